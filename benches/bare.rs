//! A router behind the shortest server there is: what the host's own server is measured against.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// Prints the address of a free port, and serves `router` there until the process ends.
pub async fn serve(router: Router) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    println!("{}", listener.local_addr().expect("it has an address"));
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        // Without this every answer waits 40 ms, which would make the host look good.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
