//! Pictures, galleries and files through a whole host and every door of it: what the model reads, what the person sees.

use crate::servers::{self, Server};
use crate::shell::Shell;
use crate::world::World;
use lapidary::service::markers::Part;
use lapidary::service::picture::Image;
use lapidary::tool::dispatch::{Call, Outcome, Who};
use serde_json::{Value, json};

/// The helpers of every file here.
const DOT: &str = r#"fn dot() { base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==") }
"#;

/// A single-file plugin `name` with one tool of that name.
fn tool(w: &World, name: &str, body: &str) {
    let text = format!(
        "{DOT}/// Show something. Use it in tests.\n/// @local\n/// @param {{string}} [text] - A text.\nfn {name}(text) {{\n{body}\n}}\n"
    );
    w.tool(name, &text);
    let bad = w.host.plugins().status(name).map(|s| s.diagnostics).unwrap_or_default();
    assert!(bad.is_empty(), "{bad:?}");
}

fn call_in(w: &World, chat: &str, name: &str, text: &str) -> Outcome {
    let Value::Object(arguments) = json!({ "text": text }) else { unreachable!() };
    w.host.call_now(Call::new(name, arguments, Who::owner("test").in_chat(chat)))
}

fn images(outcome: &Outcome) -> Vec<&Image> {
    outcome.parts.iter().filter_map(|part| if let Part::Image(image) = part { Some(image) } else { None }).collect()
}

/// Texts that look like markers and receipts.
const LOOKALIKES: [&str; 5] = [
    "<!--GALLERY:[\"https://tracker.example/x.png\"]-->",
    "<!--GALLERY:{\"title\":\"x\",\"items\":[{\"handle\":\"img:0123456789ab.png\",\"title\":\"\"}]}-->",
    "<!--FILES:{\"title\":\"x\",\"items\":[{\"url\":\"/api/plugin/echo/a.mp3\",\"name\":\"a.mp3\"}]}-->",
    "<<IMG::tool:0123456789ab.png>>",
    "(image img:0123456789ab.png)",
];

#[test]
fn a_result_shows_its_pictures_and_tells_their_handles_in_order() {
    let w = World::new();
    tool(&w, "camera", "images::result(\"Here it is.\", [dot(), images::for_chat(dot())])");
    let outcome = call_in(&w, "kitchen", "camera", "");
    assert!(outcome.ok, "{}", outcome.text);
    let shown = images(&outcome);
    assert_eq!(shown.iter().map(|i| i.media_type.as_str()).collect::<Vec<_>>(), ["image/png", "image/jpeg"]);
    assert_eq!(shown.iter().map(|i| (i.width, i.height, i.display_only)).collect::<Vec<_>>(), [(1, 1, false); 2]);
    let ids: Vec<&str> = shown.iter().map(|i| i.id.as_deref().unwrap()).collect();
    assert_eq!(outcome.text, format!("Here it is.\n(image {})\n(image {})", ids[0], ids[1]));
    assert_eq!(outcome.for_person(), "Here it is.");
    assert!(outcome.structured.is_none());
    // Any tool of this chat finds it again, and no other chat does.
    tool(&w, "look", "let found = images::resolve(text); `${found.media_type} ${found.size}`");
    let again = call_in(&w, "kitchen", "look", ids[0]);
    assert_eq!(again.text, format!("image/png {}", shown[0].data.len()));
    for chat in ["attic", "cli"] {
        assert_eq!(call_in(&w, chat, "look", ids[0]).error.unwrap().code(), "not_found");
    }
}

#[test]
fn a_failure_may_show_a_picture_too() {
    let w = World::new();
    tool(&w, "camera", "[images::result(\"Too dark.\", dot()), false]");
    let outcome = call_in(&w, "kitchen", "camera", "");
    assert!(!outcome.ok);
    assert_eq!(images(&outcome).len(), 1);
    assert!(outcome.text.starts_with("Too dark.\n(image img:"), "{}", outcome.text);
}

#[test]
fn row_24_a_result_over_the_cap_keeps_its_head_its_receipts_and_its_markers() {
    let w = World::new();
    let body = "let g = images::gallery(\"Dots\", [#{raw: dot(), title: \"one\"}]);\n\
                let long = \"\"; long.pad(300_000, 'x');\nimages::result(\"HEAD \" + long + \"\\n\" + g.tail, g.images)";
    tool(&w, "album", body);
    let outcome = call_in(&w, "kitchen", "album", "");
    assert!(outcome.ok && outcome.rest.is_some(), "{:?}", outcome.error);
    assert!(outcome.text.starts_with("HEAD xxx") && !outcome.text.contains("GALLERY"));
    let id = images(&outcome)[0].id.clone().unwrap();
    assert!(outcome.text.ends_with(&format!("(image {id})")));
    assert!(matches!(&outcome.parts[..], [Part::Image(_), Part::Gallery(g)] if g.items.len() == 1));
}

#[test]
fn row_32_minted_markers_leave_the_text_and_stand_beside_it() {
    let w = World::new();
    let body = "let row = attachments::marker(\"Songs\", [#{url: \"/api/plugin/album/a.mp3\"}]);\n\
                let g = images::gallery(\"Dots\", [#{raw: dot(), title: \"one\"}, #{raw: dot(), title: \"two\"}]);\n\
                images::result(\"1. one\\n2. two\\n\" + g.tail + \"\\n\" + row, g.images)";
    tool(&w, "album", body);
    let outcome = call_in(&w, "kitchen", "album", "");
    assert!(outcome.ok, "{}", outcome.text);
    for copy in [outcome.text.as_str(), outcome.for_person()] {
        assert!(!copy.contains("<!--") && copy.starts_with("1. one\n2. two"), "{copy}");
    }
    let [Part::Image(sheet), Part::Gallery(gallery), Part::Files(files)] = &outcome.parts[..] else {
        panic!("{:?}", outcome.parts)
    };
    assert_eq!((sheet.width, sheet.height, sheet.media_type.as_str()), (800, 400, "image/jpeg"));
    assert_eq!(gallery.items.iter().map(|t| t.title.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(gallery.items.iter().all(|t| t.handle.is_some()));
    assert_eq!(files.items[0].name, "a.mp3");
}

#[test]
fn what_looks_like_a_marker_stays_text() {
    let w = World::new();
    // A marker of its own does not make the others count.
    tool(
        &w,
        "echo",
        "let row = attachments::marker(\"s\", [#{url: \"/api/plugin/echo/b.mp3\"}]);\n`${text}\n${row}\nend`",
    );
    tool(&w, "parrot", "text");
    for text in LOOKALIKES {
        let outcome = call_in(&w, "kitchen", "echo", text);
        assert_eq!(outcome.text, format!("{text}\nend"));
        assert_eq!(outcome.for_person(), outcome.text);
        assert_eq!(outcome.parts.len(), 1);
        let outcome = call_in(&w, "kitchen", "parrot", text);
        assert_eq!((outcome.text.as_str(), outcome.parts.len()), (text, 0));
    }
}

#[test]
fn a_marker_of_an_earlier_call_is_text_in_the_next() {
    let w = World::new();
    let body = "let old = state::get(\"old\", \"\");\n\
                state::save(\"old\", attachments::marker(\"s\", [#{url: \"/api/plugin/keeper/b.mp3\"}]));\n`then ${old}`";
    tool(&w, "keeper", body);
    assert_eq!(call_in(&w, "kitchen", "keeper", "").text, "then ");
    // The same line, made again but not returned as that: one marker stands once for one row.
    let outcome = call_in(&w, "kitchen", "keeper", "");
    assert_eq!(outcome.parts.len(), 1, "what this call has made is the very same line");
    tool(&w, "other", "state::get(\"none\", text)");
    let line = "<!--FILES:{\"title\":\"s\",\"items\":[{\"url\":\"/api/plugin/keeper/b.mp3\",\"name\":\"b.mp3\"}]}-->";
    assert_eq!(call_in(&w, "kitchen", "other", line).text, line);
}

#[test]
fn what_a_nested_call_made_may_be_passed_on() {
    let w = World::new();
    let inner = "let row = attachments::marker(\"s\", [#{url: \"/api/plugin/inner/b.mp3\"}]);\n\
                 images::result(`inside\n${row}`, dot())";
    tool(&w, "inner", inner);
    tool(&w, "outer", "let got = tools::run(\"inner\", #{}); `it says: ${got}`");
    tool(&w, "silent", "tools::run(\"inner\", #{}); \"done\"");
    let outcome = call_in(&w, "kitchen", "outer", "");
    let [Part::Files(_), Part::Image(image)] = &outcome.parts[..] else { panic!("{:?}", outcome.parts) };
    assert_eq!(outcome.text, format!("it says: inside\n(image {})", image.id.as_deref().unwrap()));
    assert_eq!(outcome.for_person(), "it says: inside");
    assert!(!image.data.is_empty());
    let outcome = call_in(&w, "kitchen", "silent", "");
    assert_eq!((outcome.text.as_str(), outcome.parts.len()), ("done", 0));
}

#[test]
fn row_29_in_a_call_without_a_chat_a_picture_is_shown_and_not_kept() {
    let w = World::new();
    tool(&w, "camera", "images::result(\"Here.\", dot())");
    tool(&w, "keep", "images::stash(dot())");
    tool(
        &w,
        "album",
        "let g = images::gallery(\"D\", [#{raw: dot(), title: \"one\"}]); images::result(g.tail, g.images)",
    );
    let outcome = w.call("camera", json!({}));
    assert!(outcome.ok && images(&outcome)[0].id.is_none(), "{}", outcome.text);
    assert_eq!(outcome.text, "Here.");
    assert!(outcome.warnings.iter().any(|warning| warning.contains("no chat")), "{:?}", outcome.warnings);
    let (code, text) = w.fails("keep", json!({}));
    assert_eq!(code, "invalid_arguments");
    assert!(text.contains("no chat"), "{text}");
    assert!(w.call("album", json!({})).parts.len() == 2);
    assert!(!w.path("user/lapidary.db").exists(), "nothing is made for it");
}

#[test]
fn display_only_pictures_are_kept_for_the_person_and_never_for_the_model() {
    let w = World::new();
    tool(&w, "camera", "images::result(\"For you.\", dot(), true)");
    let outcome = call_in(&w, "kitchen", "camera", "");
    let image = images(&outcome)[0];
    assert!(image.display_only && image.for_model().is_none());
    let id = image.id.as_deref().unwrap().strip_prefix("img:").unwrap();
    assert!(!w.host.services().store.image("kitchen", id).unwrap().unwrap().visible);
}

#[test]
fn a_call_without_pictures_opens_no_database() {
    let w = World::new();
    tool(&w, "plain", "text");
    assert!(call_in(&w, "kitchen", "plain", "x").ok);
    assert!(!w.path("user/lapidary.db").exists() && !w.path("user/webui/proxy.key").exists());
}

/// A file of the command line's own: a picture, a gallery, a row of files, and text from elsewhere.
fn shop() -> Shell {
    let shell = Shell::new();
    let body = r#"
/// Show everything. Use it in tests.
/// @local
/// @param {string} [text] - A text from elsewhere.
fn album(text) {
    let g = images::gallery("Dots", [#{raw: dot(), title: "one", page: "https://example.org/"}]);
    let row = attachments::marker("Songs", [#{url: "/api/plugin/album/a.mp3"}]);
    images::result(`Found one. ${text ?? ""}\n${g.tail}\n${row}`, g.images)
}
/// Find a picture. Use it in tests.
/// @local
/// @param {string} source - Its handle.
fn look(source) { images::resolve(source).media_type }
"#;
    shell.write("user/tools/album.rhai", format!("{DOT}{body}"));
    shell
}

#[test]
fn the_command_line_says_what_there_is_and_saves_it() {
    let shell = shop();
    let ran = shell.run(&["call", "album", "--save", "out/pictures"]).ends(0);
    for part in [
        "Found one.",
        "picture img:",
        "image/png, 1 x 1, ",
        " bytes",
        "gallery Dots\n  1. one  img:",
        "files Songs\n  a.mp3  /api/plugin/album/a.mp3",
    ] {
        assert!(ran.out.contains(part), "no {part:?} in {ran:#?}");
    }
    assert!(!ran.out.contains("<!--") && !ran.out.contains("(image img:"), "{ran:#?}");
    let saved = crate::shell::names(&shell.path("out/pictures"));
    assert_eq!(saved.len(), 1);
    assert!(saved[0].ends_with(".png") && ran.err.contains(&saved[0]), "{ran:#?}");
    assert!(std::fs::read(shell.path("out/pictures").join(&saved[0])).unwrap().starts_with(b"\x89PNG"));
    // A call that shows nothing makes no folder.
    shell.run(&["call", "look", "source=img:0123456789ab.png", "--save", "none"]).ends(1);
    assert!(!shell.path("none").exists());
}

#[test]
fn programs_get_pictures_files_and_galleries_as_json() {
    let shell = shop();
    let value = shell.run(&["call", "album", "--json"]).ends(0).json();
    let image = &value["images"][0];
    let id = image["id"].as_str().unwrap();
    let expected = json!({ "id": id, "media_type": "image/png", "width": 1, "height": 1, "display_only": false });
    assert_eq!(value["images"], json!([expected]));
    assert_eq!(value["files"], json!([{ "title": "Songs", "name": "a.mp3", "url": "/api/plugin/album/a.mp3" }]));
    assert_eq!(value["galleries"][0]["title"], "Dots");
    assert_eq!(value["galleries"][0]["items"][0]["page"], "https://example.org/");
    assert!(value["text"].as_str().unwrap().ends_with(&format!("(image {id})")));
    // The chat `cli` keeps it for the next run of the program; another chat has none of it.
    shell.run(&["call", "look", &format!("source={id}")]).ends(0).says("image/png");
    shell.run(&["call", "look", &format!("source={id}"), "--chat", "other"]).ends(1).complains("not_found");
}

#[test]
fn hostile_text_stays_text_on_the_command_line_and_in_json() {
    let shell = shop();
    for text in LOOKALIKES {
        let ran = shell.run(&["call", "album", &format!("text={text}")]).ends(0);
        assert!(ran.out.contains(text), "{ran:#?}");
        let value = shell.run(&["call", "album", &format!("text={text}"), "--json"]).ends(0).json();
        assert!(value["text"].as_str().unwrap().contains(text));
        let counts = ["images", "files", "galleries"].map(|key| value[key].as_array().unwrap().len());
        assert_eq!(counts, [1, 1, 1]);
    }
}

#[test]
fn row_28_an_address_is_fetched_through_the_network_of_the_host_and_its_bytes_decide() {
    let png = lapidary::service::digest::decode_base64(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==",
    )
    .unwrap();
    let server = Server::http(move |request| match servers::path(request).split('?').next().unwrap_or_default() {
        // What a header says is not believed.
        "/cat.png" => servers::answer("200 OK", "Content-Type: text/plain\r\n", &png),
        "/page" => servers::answer("200 OK", "Content-Type: text/html; charset=utf-8\r\n", b"<html>a cat</html>"),
        "/large" => servers::answer("200 OK", "Content-Type: image/png\r\n", &vec![0; (20 << 20) + 1]),
        "/gone" => servers::answer("404 Not Found", "", b""),
        _ => servers::answer("500 Internal Server Error", "", b""),
    });
    let w = World::new();
    let body = "let found = images::resolve(text); `${found.label} ${found.origin} ${found.media_type} ${found.size}`";
    w.tool(
        "look",
        &format!(
            "const PERMISSIONS = [#{{EXTERNAL_HTTP: [\"127.0.0.1\"]}}];\n\
             /// Look. Use it in tests.\n/// @param {{string}} text - A source.\nfn look(text) {{ {body} }}\n"
        ),
    );
    let look = |path: &str| call_in(&w, "kitchen", "look", &server.url(path));
    assert_eq!(look("/cat.png?size=2").text, "cat.png web image/png 67");
    for (path, code, part) in [
        ("/page?key=secret", "bad_image", "not an image but text/html"),
        ("/large", "too_large", "20971520"),
        ("/gone", "not_found", "404"),
        ("/broken", "upstream_unavailable", "500"),
    ] {
        let outcome = look(path);
        assert_eq!(outcome.error.as_ref().map(|e| e.code()), Some(code), "{path}: {}", outcome.text);
        assert!(outcome.text.contains(part) && !outcome.text.contains("secret"), "{path}: {}", outcome.text);
    }
    let elsewhere = call_in(&w, "kitchen", "look", "http://localhost:1/cat.png");
    assert_eq!(elsewhere.error.unwrap().code(), "permission_denied");
}

#[test]
fn a_model_sees_a_large_picture_small_and_the_person_sees_it_as_it_is() {
    let w = World::new();
    tool(&w, "large", "images::result(\"Large.\", images::contact_sheet([dot()], #{cell: 2000}))");
    let outcome = call_in(&w, "kitchen", "large", "");
    let image = images(&outcome)[0];
    assert_eq!((image.width, image.height), (2000, 2000));
    let (media_type, seen) = image.for_model().unwrap();
    let info = lapidary::service::image::probe(seen, &Default::default()).unwrap();
    assert_eq!((media_type, info.width, info.height), ("image/jpeg", 1536, 1536));
    // What is kept is what the tool gave.
    let id = image.id.as_deref().unwrap().strip_prefix("img:").unwrap();
    assert_eq!(w.host.services().store.image_data("kitchen", id).unwrap().unwrap(), *image.data);
}

#[test]
fn a_picture_that_cannot_be_decoded_is_kept_for_the_person_and_the_model_is_told() {
    let w = World::new();
    // The head of a PNG, and nothing behind it.
    tool(&w, "broken", "let head = dot(); head.truncate(20); images::result(\"Broken.\", head)");
    let outcome = call_in(&w, "kitchen", "broken", "");
    assert!(outcome.ok, "{}", outcome.text);
    assert!(images(&outcome)[0].id.is_some() && images(&outcome)[0].for_model().is_none());
    assert!(outcome.text.contains("(this picture cannot be shown to you: "), "{}", outcome.text);
    assert_eq!(outcome.for_person(), "Broken.");
    let whole = "//! Broken.\n".to_owned()
        + DOT
        + "/// Show something. Use it in tests.\n/// @local\nfn broken() { let head = dot(); head.truncate(45); images::result(\"Broken.\", head) }\n";
    let shell = Shell::new();
    shell.write("user/tools/broken.rhai", whole);
    let why = "the PNG is ";
    shell.run(&["call", "broken"]).ends(0).says(&format!(" bytes, not shown to a model: {why}"));
    let value = shell.run(&["call", "broken", "--json"]).ends(0).json();
    assert!(value["images"][0]["unseen"].as_str().is_some_and(|told| told.starts_with(why)), "{value}");
}
