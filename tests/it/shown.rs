//! The shipped plugins that show pictures, hand over files and ask services, against real servers, real files and the program.

use super::http::Server as Door;
use super::mcp::folder;
use super::proxied::ask;
use crate::servers::{self, Server, answer};
use crate::shell::Shell;
use crate::world::World;
use lapidary::base::file::write_atomic_private;
use lapidary::paths::Paths;
use lapidary::service::credentials::Source;
use lapidary::service::digest::{decode_base64, encode_base64};
use lapidary::service::images::for_chat;
use lapidary::service::markers::Part;
use lapidary::tool::dispatch::{Call, Outcome, Who};
use serde_json::{Value, json};
use std::path::Path;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAMCAIAAADkharWAAAAG0lEQVR4nGNkYKgQYGAgHrEwiDCQBEY1jBQNAFRUAnK//gWpAAAAAElFTkSuQmCC";
const WEBP: &str = "UklGRjoAAABXRUJQVlA4IC4AAACQAQCdASoQAAwABUB8JbACdACyOKwA/ulDDD1uOIDKeQwI5iRI0BOLxv2iLAAA";

fn png() -> Vec<u8> {
    decode_base64(PNG).unwrap()
}

fn webp() -> Vec<u8> {
    decode_base64(WEBP).unwrap()
}

fn jpeg() -> Vec<u8> {
    for_chat(&png(), 64, 80, &|| Ok(())).unwrap()
}

fn call(w: &World, tool: &str, arguments: Value) -> Outcome {
    let Value::Object(arguments) = arguments else { unreachable!() };
    w.host.call_now(Call::new(tool, arguments, Who::owner("test").in_chat("kitchen")))
}

#[track_caller]
fn good(w: &World, tool: &str, arguments: Value) -> Outcome {
    let outcome = call(w, tool, arguments);
    assert!(outcome.ok, "{tool}: {}", outcome.text);
    outcome
}

#[track_caller]
fn failed(w: &World, tool: &str, arguments: Value) -> (&'static str, String) {
    let outcome = call(w, tool, arguments);
    assert!(!outcome.ok, "{tool}: {}", outcome.text);
    (outcome.error.map_or("", |e| e.code()), outcome.text)
}

/// Width and height of the pictures that a model sees, and the titles of the tiles that a person sees.
fn shown(outcome: &Outcome) -> (Vec<(u32, u32)>, Vec<String>) {
    let mut pictures = Vec::new();
    let mut tiles = Vec::new();
    for part in &outcome.parts {
        match part {
            Part::Image(image) => pictures.push((image.width, image.height)),
            Part::Gallery(gallery) => tiles.extend(gallery.items.iter().map(|tile| tile.title.clone())),
            Part::Files(_) => {}
        }
    }
    (pictures, tiles)
}

fn json_answer(value: &Value) -> Vec<u8> {
    answer("200 OK", "content-type: application/json\r\n", value.to_string().as_bytes())
}

/// A search engine and the hosts of its pictures in one. What it finds has broken pictures, lies, and ways into the network.
fn engine() -> Server {
    Server::http(|request| {
        let path = servers::path(request);
        let at = |name: &str| format!("http://{}/{name}", servers::header(request, "host").unwrap_or_default());
        match path.split('?').next().unwrap_or_default() {
            "/search" if path.contains("pageno=1") => json_answer(&json!({ "unresponsive_engines": [], "results": [
                { "title": "A cat", "thumbnail_src": at("a.png"), "img_src": at("large.png"), "url": "https://example.org/cat" },
                { "title": "Cut off\nin two lines", "thumbnail_src": at("cut.png"), "url": "https://example.org/cut" },
                { "title": "Gone", "thumbnail_src": at("gone.png") },
                { "title": "A page", "thumbnail_src": at("page.png") },
                { "title": "The router", "thumbnail_src": "http://192.168.1.1/reboot" },
                { "title": "A file", "thumbnail_src": "file:///etc/passwd" },
                { "title": "Elsewhere", "thumbnail_src": "https://elsewhere.example/a.jpg" },
                { "title": "A dog", "thumbnail_src": "/b.jpg", "img_src": "http://10.0.0.1/large.jpg", "url": "javascript:alert(1)" },
                { "title": "The cat again", "thumbnail_src": at("a.png") },
                { "title": "Inside", "thumbnail_src": format!("data:image/webp;base64,{WEBP}"), "url": "https://example.org/in" },
                { "title": 5, "thumbnail_src": [] },
            ]})),
            "/search" => json_answer(&json!({ "results": [] })),
            // Types that lie.
            "/a.png" => answer("200 OK", "content-type: text/html\r\n", &png()),
            "/large.png" => answer("200 OK", "content-type: image/png\r\n", &png()),
            "/b.jpg" => answer("200 OK", "content-type: image/png\r\n", &jpeg()),
            "/cut.png" => answer("200 OK", "content-type: image/png\r\n", &png()[..40]),
            "/page.png" => answer("200 OK", "content-type: image/png\r\n", b"<html>no picture</html>"),
            _ => answer("404 Not Found", "", b""),
        }
    })
}

fn searching(server: &Server) -> World {
    World::shipped(
        &json!({}),
        &[("pictures", json!({ "source": "searxng", "searxng": server.url("/") }))],
        Source::none(),
    )
}

#[test]
fn a_search_shows_what_loads_leaves_out_what_does_not_and_goes_nowhere_else() {
    let server = engine();
    let w = searching(&server);
    let outcome = good(&w, "find_pictures", json!({ "query": "  a   cat " }));
    let (pictures, tiles) = shown(&outcome);
    assert_eq!(tiles, ["A cat", "A dog", "Inside"]);
    // One sheet of two by two.
    assert_eq!(pictures, [(800, 800)]);
    let lines: Vec<&str> = outcome.text.lines().collect();
    assert_eq!(lines[0], "3 pictures of 'a cat' from SearXNG:");
    assert!(lines[1].starts_with("1. A cat - img:") && lines[2] == "   https://example.org/cat", "{}", outcome.text);
    assert!(lines[3].starts_with("2. A dog - img:") && lines[4].starts_with("3. Inside - img:"), "{}", outcome.text);
    let lost = "(4 more could not be loaded: 1 answered 404, 2 no picture that can be shown and 1 on a host that this plugin may not reach)";
    assert!(
        outcome.text.contains(lost) && outcome.text.contains("lapidary grant pictures EXTERNAL_HTTP"),
        "{}",
        outcome.text
    );
    let Some(Part::Gallery(gallery)) = outcome.parts.iter().find(|part| matches!(part, Part::Gallery(_))) else {
        panic!("{:?}", outcome.parts)
    };
    assert!(gallery.items.iter().all(|tile| tile.handle.is_some()));
    assert_eq!(gallery.items[0].page.as_deref(), Some("https://example.org/cat"));
    // What the proxy would refuse is in no tile, and the model knows why.
    assert!(gallery.items.iter().all(|tile| tile.full.is_none() && tile.thumb.is_none()), "{gallery:?}");
    assert!(
        outcome.text.contains("(1 large picture is in the local network: the person sees only the small one"),
        "{}",
        outcome.text
    );
    assert_eq!(gallery.items[1].page, None);
    // The same search is not asked again, and shows the person alone where that is wanted.
    let asked = server.seen().len();
    let quiet = good(&w, "find_pictures", json!({ "query": "A cat", "view": false }));
    assert_eq!(shown(&quiet), (vec![], tiles));
    assert!(server.seen()[asked..].iter().all(|request| !servers::path(request).starts_with("/search")));
    // Up to the one that is enough, and no further.
    let one = good(&w, "find_pictures", json!({ "query": "one cat", "count": 1 }));
    assert_eq!((shown(&one).1, one.text.contains("could not be loaded")), (vec!["A cat".to_owned()], false));
}

#[test]
fn a_found_picture_is_shown_large_or_small_with_the_reason() {
    let server = engine();
    let w = searching(&server);
    let found = good(&w, "find_pictures", json!({ "query": "cat" }));
    let handles: Vec<&str> =
        found.text.lines().filter(|l| !l.starts_with('(')).filter_map(|l| l.split_once(" - ")).map(|l| l.1).collect();
    let before = server.seen().len();
    let large = good(&w, "view_picture", json!({ "picture": handles[0] }));
    assert!(large.text.starts_with("A cat\nhttps://example.org/cat\n(image img:"), "{}", large.text);
    assert_eq!(shown(&large).0, [(16, 12)]);
    assert_eq!(servers::path(&server.seen()[before]), "/large.png");
    // One whose large picture is nowhere that search results may lead.
    let small = good(&w, "view_picture", json!({ "picture": handles[1] }));
    assert!(small.text.contains("as it was found"), "{}", small.text);
    assert_eq!(failed(&w, "view_picture", json!({ "picture": "img:0123456789ab.jpg" })).0, "not_found");
    assert_eq!(failed(&w, "view_picture", json!({ "picture": "https://example.org/cat" })).0, "invalid_arguments");
    // Another chat does not have it.
    let elsewhere = Who::owner("test").in_chat("attic");
    let Value::Object(arguments) = json!({ "picture": handles[0] }) else { unreachable!() };
    let outcome = w.host.call_now(Call::new("view_picture", arguments, elsewhere));
    assert_eq!(outcome.error.map(|e| e.code()), Some("not_found"));
}

#[test]
fn a_search_that_fails_says_why_and_what_helps() {
    let server = Server::http(|request| match servers::path(request) {
        path if path.contains("q=json") => answer("403 Forbidden", "", b""),
        path if path.contains("q=busy") => answer("429 Too Many Requests", "retry-after: 30\r\n", b""),
        path if path.contains("q=down") => answer("502 Bad Gateway", "", b""),
        path if path.contains("q=page") => answer("200 OK", "", b"<html>"),
        path if path.contains("q=silent") => {
            json_answer(&json!({ "results": [], "unresponsive_engines": [["one", "timeout"], ["two", "CAPTCHA"]] }))
        }
        _ => json_answer(&json!({ "results": [] })),
    });
    let w = searching(&server);
    for (query, code, part) in [
        ("json", "upstream_auth", "`json` to `search.formats`"),
        ("busy", "rate_limited", "30 s"),
        ("down", "upstream_unavailable", "502"),
        ("page", "upstream_unavailable", "no search result"),
        ("silent", "upstream_unavailable", "one and two"),
        ("nothing", "not_found", "no pictures of 'nothing'"),
        (" ", "invalid_arguments", "empty"),
    ] {
        let outcome = call(&w, "find_pictures", json!({ "query": query }));
        let error = outcome.error.unwrap_or_else(|| panic!("{query}: {}", outcome.text));
        let told = format!("{error:?} {}", outcome.text);
        assert_eq!(error.code(), code, "{query}: {told}");
        assert!(told.contains(part), "{query}: {told}");
    }
    let nobody = json!({ "source": "searxng", "searxng": format!("http://127.0.0.1:{}", servers::closed_port()) });
    let w = World::shipped(&json!({}), &[("pictures", nobody)], Source::none());
    let (code, text) = failed(&w, "find_pictures", json!({ "query": "cat" }));
    assert!(code == "upstream_unavailable" && text.contains("commons and openverse"), "{text}");
    // A host that nobody allowed.
    let w = World::shipped(
        &json!({}),
        &[("pictures", json!({ "source": "searxng", "searxng": "http://search.lan" }))],
        Source::none(),
    );
    let (code, text) = failed(&w, "find_pictures", json!({ "query": "cat" }));
    assert!(code == "permission_denied" && text.contains("lapidary grant pictures EXTERNAL_HTTP=search.lan"), "{text}");
}

#[test]
fn the_free_sources_name_the_maker_and_the_licence() {
    let server = Server::http(|request| {
        let at = |name: &str| format!("http://{}/{name}", servers::header(request, "host").unwrap_or_default());
        match servers::path(request).split('?').next().unwrap_or_default() {
            "/w/api.php" => json_answer(&json!({ "query": { "pages": [
                { "title": "File:Second one.png", "index": 2, "imageinfo": [{ "thumburl": at("b.png"), "url": at("b.png") }] },
                { "title": "File:No info.png", "index": 3 },
                { "title": "File:Red panda.jpg", "index": 1, "imageinfo": [{ "thumburl": at("500px-a.png"), "url": at("a.png"),
                    "width": 4000, "descriptionurl": "https://commons.wikimedia.org/wiki/File:Red_panda.jpg",
                    "extmetadata": { "LicenseShortName": { "value": "CC BY-SA 4.0" },
                        "Artist": { "value": "<a href=\"//x\">Jane <b>Doe</b></a>" } } }] },
            ] } })),
            "/v1/images/" => json_answer(&json!({ "results": [
                { "title": "Panda", "thumbnail": at("a.png"), "url": "https://live.example/a.jpg", "creator": "Bo",
                  "foreign_landing_url": "https://photos.example/1", "license": "by-nc", "license_version": "2.0" },
                { "title": "Old panda", "thumbnail": at("b.png"), "license": "pdm", "license_version": null },
            ] })),
            _ => answer("200 OK", "", &png()),
        }
    });
    let settings = json!({ "commons": server.url(""), "openverse": server.url("") });
    let w = World::shipped(&json!({}), &[("pictures", settings)], Source::none());
    let text = good(&w, "find_pictures", json!({ "query": "red panda" })).text;
    let lines: Vec<&str> = text.lines().map(|line| line.split(" - img:").next().unwrap_or_default()).collect();
    assert_eq!(
        lines[..4],
        [
            "2 pictures of 'red panda' from Wikimedia Commons:",
            "1. Red panda, by Jane Doe, CC BY-SA 4.0",
            "   https://commons.wikimedia.org/wiki/File:Red_panda.jpg",
            "2. Second one"
        ]
    );
    let text = good(&w, "find_pictures", json!({ "query": "red panda", "source": "openverse" })).text;
    assert!(
        text.contains("1. Panda, by Bo, CC BY-NC 2.0 - img:") && text.contains("2. Old panda, PDM - img:"),
        "{text}"
    );
}

/// A folder of pictures as people have them.
fn pictures(at: &Path) {
    std::fs::create_dir_all(at.join("2024/Italy")).unwrap();
    for (name, bytes) in [
        ("IMG 10.jpg", jpeg()),
        ("IMG 9.png", png()),
        ("img 2.webp", webp()),
        ("IMG 3.jpg", png()[..50].to_vec()),
        ("IMG 4.png", b"no picture".to_vec()),
        ("2024/Italy/beach.JPG", jpeg()),
        (".hidden.png", png()),
        ("notes.txt", b"notes".to_vec()),
    ] {
        std::fs::write(at.join(name), bytes).unwrap();
    }
    std::fs::write(at.parent().unwrap().join("secret.png"), png()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(at.parent().unwrap().join("secret.png"), at.join("IMG 5.png")).unwrap();
}

#[test]
fn an_album_of_every_kind_is_shown_in_order_without_what_is_broken() {
    let outside = tempfile::tempdir().unwrap();
    let home = outside.path().join("Pictures");
    pictures(&home);
    let w = World::shipped(&json!({ "album": { "folders": { "pictures": home } } }), &[], Source::none());
    let list = good(&w, "album_list", json!({})).text;
    assert!(
        list.starts_with("the pictures' folder: 5 pictures, of ") && list.ends_with("- 2024: 0 pictures, 1 folder"),
        "{list}"
    );
    let outcome = good(&w, "album_show", json!({}));
    let (sheet, tiles) = shown(&outcome);
    assert_eq!((sheet, tiles), (vec![(800, 800)], vec!["img 2.webp".into(), "IMG 9.png".into(), "IMG 10.jpg".into()]));
    for part in
        ["1. img 2.webp - img:", "3. IMG 10.jpg - img:", "(left out IMG 3.jpg: ", "(left out IMG 4.png: not an image"]
    {
        assert!(outcome.text.contains(part), "{part}: {}", outcome.text);
    }
    let Some(Part::Gallery(gallery)) = outcome.parts.iter().find(|part| matches!(part, Part::Gallery(_))) else {
        panic!("{:?}", outcome.parts)
    };
    let full = gallery.items[0].full.as_deref().unwrap();
    assert!(full.starts_with("/api/plugin/album/picture/") && full.ends_with(".webp"), "{full}");
    let opened = good(&w, "album_open", json!({ "name": "2024/Italy/BEACH.jpg" }));
    assert!(opened.text.starts_with("2024/Italy/beach.JPG: 1 kB, changed "), "{}", opened.text);
    let [Part::Image(image), Part::Files(files)] = &opened.parts[..] else { panic!("{:?}", opened.parts) };
    assert_eq!((image.media_type.as_str(), image.width, image.height), ("image/jpeg", 16, 12));
    assert_eq!(files.items[0].name, "beach.JPG");
    // A private chat may look at them too, and the picture stays in it.
    let mut private = Who::owner("test").in_chat("diary");
    private.private = true;
    let outcome = w.host.call_now(Call::new("album_show", serde_json::Map::new(), private));
    assert!(outcome.ok, "{}", outcome.text);
}

#[test]
fn no_path_leads_out_of_the_album() {
    let outside = tempfile::tempdir().unwrap();
    let home = outside.path().join("Pictures");
    pictures(&home);
    let w = World::shipped(&json!({ "album": { "folders": { "pictures": home } } }), &[], Source::none());
    for name in ["../secret.png", "2024/../../secret.png", "IMG 5.png", "/etc/passwd", ".hidden.png"] {
        let (code, text) = failed(&w, "album_open", json!({ "name": name }));
        assert!(matches!(code, "permission_denied" | "not_found"), "{name}: {text}");
        assert!(!text.contains(outside.path().to_str().unwrap()), "{name}: {text}");
    }
    let w = World::shipped(&json!({}), &[], Source::none());
    let (code, text) = failed(&w, "album_show", json!({}));
    assert!(code == "permission_denied" && text.contains("lapidary grant album folder:pictures="), "{text}");
}

#[test]
fn a_tile_of_the_album_opens_the_original_and_nothing_beside_it() {
    let outside = tempfile::tempdir().unwrap();
    let home = outside.path().join("Pictures");
    pictures(&home);
    let dir = folder(&[]);
    let paths = Paths::at(dir.path());
    paths.ensure().unwrap();
    std::fs::write(paths.grants_file(), json!({ "album": { "folders": { "pictures": home } } }).to_string()).unwrap();
    let server = Door::start(dir.path());
    let get = |path: &str| {
        let id = encode_base64(path.as_bytes()).replace('+', "-").replace('/', "_").replace('=', "");
        ask(&server, "GET", &format!("/api/plugin/album/picture/{id}.jpg"), &[], "")
    };
    let original = get("2024/Italy/beach.JPG");
    assert_eq!((original.status, original.header("content-type")), (200, Some("image/jpeg")));
    assert_eq!(original.body, jpeg());
    for path in ["notes.txt", ".hidden.png", "../secret.png", "IMG 5.png", "missing.png", "2024", ""] {
        let reply = get(path);
        assert!(matches!(reply.status, 403 | 404), "{path}: {reply:?}");
        assert!(!reply.text().contains(outside.path().to_str().unwrap()), "{path}: {reply:?}");
    }
    assert_eq!(ask(&server, "GET", "/api/plugin/album/picture/%25%25", &[], "").status, 404);
}

/// A shell with the shipped plugins.
fn shop() -> Shell {
    let shell = Shell::new();
    std::fs::remove_dir(shell.path("scripts")).unwrap();
    shell
}

#[test]
fn a_recorded_melody_is_a_wav_that_a_player_can_jump_in() {
    let shell = shop();
    let made =
        shell.call("recorder_play", r#"{"notes": "A4:2 R:1 C5", "tempo": 60, "title": "Two tones"}"#).ends(0).json();
    let expected = json!([{ "title": "Two tones", "name": "1-two-tones.wav", "url": "/api/plugin/recorder/take/1-two-tones.wav" }]);
    assert_eq!(made["files"], expected);
    let server = Door::start(shell.dir.path());
    let take = "/api/plugin/recorder/take/1-two-tones.wav";
    let whole = ask(&server, "GET", take, &[], "");
    assert_eq!((whole.status, whole.header("content-type")), (200, Some("audio/wav")));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    // Four seconds of 22,050 samples, each of two bytes, behind a head of 44.
    let bytes = 4 * 22_050 * 2;
    assert_eq!(whole.body.len(), 44 + bytes);
    let number = |at: usize, count: usize| {
        whole.body[at..at + count].iter().rev().fold(0_usize, |n, b| n << 8 | usize::from(*b))
    };
    assert_eq!(
        (&whole.body[..4], &whole.body[8..16], &whole.body[36..40]),
        (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
    );
    let head =
        [(4, 4), (16, 4), (20, 2), (22, 2), (24, 4), (28, 4), (32, 2), (34, 2), (40, 4)].map(|(at, n)| number(at, n));
    assert_eq!(head, [36 + bytes, 16, 1, 1, 22_050, 44_100, 2, 16, bytes]);
    // The rest in the third second is silent, the tones are not.
    let second = |n: usize| whole.body[44 + n * 44_100..44 + (n + 1) * 44_100].iter().any(|b| *b != 0);
    assert_eq!([0, 1, 2, 3].map(second), [true, true, false, true]);
    let part = ask(&server, "GET", take, &[("Range", "bytes=44-143")], "");
    assert_eq!((part.status, part.body.len()), (206, 100));
    assert_eq!(part.header("content-range"), Some(format!("bytes 44-143/{}", whole.body.len()).as_str()));
    assert_eq!(part.body, whole.body[44..144]);
    assert_eq!(ask(&server, "GET", take, &[("Range", "bytes=9999999-")], "").status, 416);
    let saved = ask(&server, "GET", &format!("{take}?save=1"), &[], "");
    assert!(
        saved.header("content-disposition").is_some_and(|d| d.contains("attachment") && d.contains("1-two-tones.wav"))
    );
    for other in ["2-none.wav", "..%2F..%2Frecorder.json", "1-two-tones.mp3", "1-TWO-TONES.wav"] {
        assert_eq!(ask(&server, "GET", &format!("/api/plugin/recorder/take/{other}"), &[], "").status, 404, "{other}");
    }
}

#[test]
fn the_recorder_keeps_nothing_of_a_private_chat() {
    let shell = shop();
    let ran = shell.run(&["call", "recorder_play", "notes=C4", "--private"]).ends(1).complains("disabled");
    assert!(ran.err.contains("private"), "{ran:?}");
    assert!(
        !shell.path("user/plugin_state/recorder_files").exists()
            && !shell.path("user/plugin_state/recorder.json").exists()
    );
    shell.run(&["call", "find_pictures", "query=cat", "--private"]).ends(1);
    shell.run(&["call", "weather_now", "place=Brno", "--private"]).ends(1);
}

#[test]
fn what_a_shipped_plugin_could_do_with_a_grant_is_nothing_to_look_at() {
    let shell = shop();
    let ran = shell.run(&["doctor"]).ends(0);
    assert!(!ran.out.contains("USE_SECRETS"), "{ran:?}");
    // The same plugin in a folder of one's own is there because somebody wants it.
    for file in ["plugin.json", "tools/weather.rhai", "README.md"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/weather").join(file);
        shell.write(&format!("user/plugins/weather/{file}"), std::fs::read(from).unwrap());
    }
    shell.run(&["doctor"]).ends(0).says("lapidary grant weather USE_SECRETS=weather");
}

const KEY: &str = "k3y/with+signs=0815";
/// The key as it is, in an address, in JSON and in base64, each in part.
const TRACES: [&str; 4] = ["k3y/with", "k3y%2F", "k3y\\/", "azN5L3"];

/// A weather service that repeats the key wherever it can.
fn service() -> Server {
    Server::http(|request| {
        let path = servers::path(request).to_owned();
        let key = path.split("appid=").nth(1).unwrap_or_default().split('&').next().unwrap_or_default().to_owned();
        let plain = key.replace("%2F", "/").replace("%2B", "+").replace("%3D", "=");
        if plain != KEY {
            return answer("401 Unauthorized", "", format!("{{\"cod\":401,\"message\":\"not {plain}\"}}").as_bytes());
        }
        match &path {
            p if p.contains("q=Nowhere") => answer("404 Not Found", "", b"{}"),
            p if p.contains("q=Refused") => answer("401 Unauthorized", "", format!("no {plain} {key}").as_bytes()),
            p if p.contains("q=Busy") => answer("429 Too Many", "retry-after: 90\r\n", b"{}"),
            p if p.contains("q=Late") => answer("429 Too Many", "retry-after: soon\r\n", b"{}"),
            p if p.contains("q=Down") => answer("503 Down", "", plain.as_bytes()),
            p if p.contains("q=Page") => answer("200 OK", "", format!("<html>{plain}").as_bytes()),
            _ => json_answer(&json!({
                "name": format!("Brno {plain}"), "sys": { "country": key, "sunrise": 1_767_250_000, "sunset": 1_767_280_000 },
                "weather": [{ "description": format!("light rain {plain}") }], "main": { "temp": 12.4, "feels_like": -0.4 },
                "wind": { "speed": 4.1, "deg": 262 }, "dt": 1_767_225_600, "timezone": 3600,
            })),
        }
    })
}

fn keyed(server: &Server, home: &Path, fresh: i64) -> World {
    let file = home.join("credentials.json");
    let book = json!({ "credentials": { "weather": { "value": KEY, "hosts": ["127.0.0.1"] } } });
    write_atomic_private(&file, book.to_string().as_bytes()).unwrap();
    let grants = json!({ "weather": { "secrets": ["weather"], "hosts": ["127.0.0.1"] } });
    let settings = json!({ "server": server.url("/"), "fresh": fresh });
    World::shipped(&grants, &[("weather", settings)], Source::file(file))
}

/// Everything in every file below a folder.
fn everything(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            all.extend(everything(&entry.path()));
        } else {
            all.extend(std::fs::read(entry.path()).unwrap_or_default());
        }
    }
    all
}

#[test]
fn the_weather_is_told_and_its_key_is_nowhere_in_it() {
    let (server, home) = (service(), tempfile::tempdir().unwrap());
    let w = keyed(&server, home.path(), 10);
    let mut told = Vec::new();
    let now = good(&w, "weather_now", json!({ "place": "Brno" }));
    assert!(
        now.text.starts_with("Brno ***, ***: light rain ***, 12 °C (feels like 0); wind 4 m/s from the west."),
        "{}",
        now.text
    );
    assert!(now.text.ends_with("Measured at 01:00 there."), "{}", now.text);
    told.push(format!("{now:?}"));
    for (place, code, part) in [
        ("Nowhere", "not_found", "'Nowhere'"),
        ("Refused", "upstream_auth", "lapidary credentials set weather --host 127.0.0.1"),
        ("Busy", "rate_limited", "90 s"),
        ("Late", "rate_limited", "ask again"),
        ("Down", "upstream_unavailable", "503"),
        ("Page", "upstream_unavailable", "no weather"),
    ] {
        let outcome = call(&w, "weather_now", json!({ "place": place }));
        let error = outcome.error.clone().unwrap();
        assert_eq!(error.code(), code, "{place}: {}", outcome.text);
        assert!(outcome.text.contains(part), "{place}: {}", outcome.text);
        assert_eq!(error.retry_after_ms(), (place == "Busy").then_some(90_000), "{place}");
        told.push(format!("{outcome:?}"));
    }
    // It was sent, and stands in nothing that was told or written down.
    assert!(
        server.seen().iter().all(|request| request.contains("appid=k3y%2Fwith%2Bsigns%3D0815")),
        "{:?}",
        server.seen()
    );
    told.push(String::from_utf8_lossy(&everything(w.dir.path())).into_owned());
    for (text, trace) in told.iter().flat_map(|text| TRACES.map(|trace| (text, trace))) {
        assert!(!text.contains(trace), "{trace} is shown: {text}");
    }
}

#[test]
fn the_same_question_is_asked_once_and_a_failure_is_asked_again() {
    let (server, home) = (service(), tempfile::tempdir().unwrap());
    let w = keyed(&server, home.path(), 10);
    for place in ["Brno", "brno", "  BRNO ", "Brno"] {
        good(&w, "weather_now", json!({ "place": place }));
    }
    assert_eq!(server.seen().len(), 1);
    good(&w, "weather_now", json!({ "place": "Brno", "units": "imperial" }));
    assert_eq!(server.seen().len(), 2);
    for _ in 0..2 {
        failed(&w, "weather_now", json!({ "place": "Down" }));
    }
    assert_eq!(server.seen().len(), 4);
    let w = keyed(&server, home.path(), 0);
    for _ in 0..2 {
        good(&w, "weather_now", json!({ "place": "Brno" }));
    }
    assert_eq!(server.seen().len(), 6);
}

#[test]
fn without_a_key_or_a_grant_the_weather_says_what_to_type() {
    let server = service();
    let settings = [("weather", json!({ "server": server.url("") }))];
    let w = World::shipped(&json!({}), &settings, Source::none());
    let (code, text) = failed(&w, "weather_now", json!({ "place": "Brno" }));
    assert!(code == "permission_denied" && text.contains("lapidary grant weather USE_SECRETS=weather"), "{text}");
    let grants = json!({ "weather": { "secrets": ["weather"], "hosts": ["127.0.0.1"] } });
    let w = World::shipped(&grants, &settings, Source::none());
    let (code, text) = failed(&w, "weather_now", json!({ "place": "Brno" }));
    assert!(code == "not_found" && text.contains("lapidary credentials set weather --host 127.0.0.1"), "{text}");
    // A key of another host is not sent to this one.
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("credentials.json");
    let book = json!({ "credentials": { "weather": { "value": KEY, "hosts": ["api.openweathermap.org"] } } });
    write_atomic_private(&file, book.to_string().as_bytes()).unwrap();
    let w = World::shipped(&grants, &settings, Source::file(file));
    assert_eq!(failed(&w, "weather_now", json!({ "place": "Brno" })).0, "permission_denied");
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}
