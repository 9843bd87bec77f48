//! Real servers on the loopback interface, started by tests: HTTP, TLS with an authority of its own, SOCKS5, HTTP CONNECT.
//! Each writes down what it was asked. They know nothing of the host.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a server was asked, one entry for each request or connection.
pub type Log = Arc<Mutex<Vec<String>>>;

/// A stream that both ends can be read from and written to.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A running server. Its thread ends with the test's process.
pub struct Server {
    pub port: u16,
    pub log: Log,
}

impl Server {
    fn listen(serve: impl Fn(TcpStream, &Log) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (log, serve) = (Log::default(), Arc::new(serve));
        let shared = log.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, serve) = (shared.clone(), serve.clone());
                std::thread::spawn(move || serve(stream, &log));
            }
        });
        Server { port, log }
    }

    /// A web server: `answer` turns a request's text into the bytes of the answer, and the connection ends.
    pub fn http(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
        Server::listen(move |stream, log| one_request(stream, log, &answer))
    }

    /// A web server whose body never ends: `began` bytes of it, and then nothing while the client waits.
    pub fn stalling(began: &'static [u8]) -> Server {
        Server::listen(move |mut stream, log| {
            let Some(request) = read_request(&mut stream) else { return };
            log.lock().unwrap().push(request);
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000000\r\n\r\n";
            let _ = stream.write_all(head).and_then(|()| stream.write_all(began));
            // Until the client goes away.
            let _ = stream.read(&mut [0]);
        })
    }

    /// The same over TLS, for the names of `identity`.
    pub fn https(identity: &Identity, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let config = identity.config();
        Server::listen(move |stream, log| {
            let Ok(connection) = rustls::ServerConnection::new(config.clone()) else { return };
            one_request(rustls::StreamOwned::new(connection, stream), log, &answer);
        })
    }

    /// A SOCKS5 proxy that sends everybody to `target` and writes down what was asked for: `name example.org:80`, or
    /// `address 8.8.8.8:80` where the client resolved it itself. With a login, nobody else is let in.
    pub fn socks(target: u16, login: Option<(&'static str, &'static str)>) -> Server {
        Server::listen(move |mut stream, log| {
            let _ = socks(&mut stream, log, login).and_then(|()| tunnel(stream, target));
        })
    }

    /// An HTTP proxy that sends everybody to `target` and writes down the first line of every request, and who asked.
    pub fn proxy(target: u16, login: Option<&'static str>) -> Server {
        Server::listen(move |mut stream, log| {
            let Some(request) = read_request(&mut stream) else { return };
            let first = request.lines().next().unwrap_or_default().to_owned();
            let who = header(&request, "proxy-authorization").unwrap_or("nobody").to_owned();
            log.lock().unwrap().push(format!("{first} by {who}"));
            if login.is_some_and(|login| login != who) {
                let refusal = "HTTP/1.1 407 Who Are You\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n";
                let _ = stream.write_all(refusal.as_bytes());
                return;
            }
            if first.starts_with("CONNECT ") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").and_then(|()| tunnel(stream, target));
                return;
            }
            // http://host/path becomes /path, as proxies do.
            let origin = request.split_once("://").and_then(|(method, rest)| {
                let (_, path) = rest.split_once('/')?;
                Some(format!("{}/{path}", method.strip_suffix("http")?))
            });
            let Ok(mut onward) = TcpStream::connect(("127.0.0.1", target)) else { return };
            let _ =
                onward.write_all(origin.unwrap_or(request).as_bytes()).and_then(|()| tunnel_between(stream, onward));
        })
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// An address on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// A port on which nobody listens.
pub fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The bytes of an answer.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The path of a request, query included.
pub fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// A header of a request, by its name in lower case.
pub fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = request.split_once("\r\n\r\n")?;
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .find(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|h| h.1)
}

fn one_request(mut stream: impl Stream, log: &Log, answer: &dyn Fn(&str) -> Vec<u8>) {
    let Some(request) = read_request(&mut stream) else { return };
    log.lock().unwrap().push(request.clone());
    let _ = stream.write_all(&answer(&request)).and_then(|()| stream.flush());
}

fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = header(&text, "content-length").map_or(0, |n| n.parse::<usize>().unwrap());
            if bytes.len() >= head.len() + 4 + length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

fn socks(stream: &mut TcpStream, log: &Log, login: Option<(&str, &str)>) -> std::io::Result<()> {
    let refuse = || Err(std::io::Error::other("refused"));
    let byte = |stream: &mut TcpStream| -> std::io::Result<u8> {
        let mut one = [0];
        stream.read_exact(&mut one).map(|()| one[0])
    };
    let counted = |stream: &mut TcpStream| -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; byte(stream)?.into()];
        stream.read_exact(&mut bytes).map(|()| bytes)
    };
    byte(stream)?;
    let methods = counted(stream)?;
    match login {
        None => stream.write_all(&[5, 0])?,
        Some(_) if !methods.contains(&2) => {
            stream.write_all(&[5, 255])?;
            return refuse();
        }
        Some((user, password)) => {
            stream.write_all(&[5, 2])?;
            byte(stream)?;
            let given = (counted(stream)?, counted(stream)?);
            let right = given == (user.as_bytes().to_vec(), password.as_bytes().to_vec());
            stream.write_all(&[1, u8::from(!right)])?;
            if !right {
                return refuse();
            }
        }
    }
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let place = match head[3] {
        3 => format!("name {}", String::from_utf8_lossy(&counted(stream)?)),
        1 => {
            let mut ip = [0; 4];
            stream.read_exact(&mut ip)?;
            format!("address {}", std::net::Ipv4Addr::from(ip))
        }
        _ => {
            let mut ip = [0; 16];
            stream.read_exact(&mut ip)?;
            format!("address {}", std::net::Ipv6Addr::from(ip))
        }
    };
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    log.lock().unwrap().push(format!("{place}:{}", u16::from_be_bytes(port)));
    stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0])
}

fn tunnel(stream: TcpStream, target: u16) -> std::io::Result<()> {
    tunnel_between(stream, TcpStream::connect(("127.0.0.1", target))?)
}

fn tunnel_between(mut one: TcpStream, mut other: TcpStream) -> std::io::Result<()> {
    let (mut from, mut to) = (one.try_clone()?, other.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let copied = std::io::copy(&mut other, &mut one);
    let _ = one.shutdown(std::net::Shutdown::Both);
    copied.map(|_| ())
}

/// A server's certificate, and the authority that signed it.
pub struct Identity {
    /// The authority, as a file in PEM.
    pub authority: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    /// For these names and addresses.
    pub fn of(names: &[&str]) -> Identity {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "An authority for tests");
        let authority = params.self_signed(&authority_key).unwrap();
        let issuer = rcgen::Issuer::new(params, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        Identity { authority: authority.pem(), certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    fn config(&self) -> Arc<rustls::ServerConfig> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// About `bytes` zeros, gzipped to a hundred and fiftieth: one zero, then copies of it with fixed Huffman codes. The check sum
/// is wrong, so who unpacks all of it fails.
pub fn gzip_bomb(bytes: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    let code = |bits: &mut Vec<bool>, code: u32, n: u32| (0..n).rev().for_each(|i| bits.push(code >> i & 1 == 1));
    // Literals 0..=143 are eight bits from 0x30; length 258 is symbol 285, distance 1 is code 0.
    code(&mut bits, 0x30, 8);
    for _ in 0..bytes / 258 {
        code(&mut bits, 0b1100_0101, 8);
        code(&mut bits, 0, 5);
    }
    code(&mut bits, 0, 7);
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    out.extend(bits.chunks(8).map(|c| c.iter().enumerate().fold(0_u8, |b, (i, on)| b | (u8::from(*on) << i))));
    out.extend([0; 8]);
    out
}
