//! Models over HTTP: those there are, servers that are found, and one of theirs taken in.

use super::api_client::Served;
use super::chat_model::Model;
use super::servers::closed_port;
use super::world::World;
use serde_json::json;

#[test]
fn a_model_that_is_found_on_this_machine_is_taken_in_at_once_and_for_good() {
    let (served, model) = (Served::new(), Model::start());
    assert_eq!(served.get("/api/models").good(), json!({ "models": [], "found": [] }));
    let base_url = format!("http://127.0.0.1:{}/v1", model.port);
    let found = served.get(&format!("/api/models?port={}", model.port)).good();
    assert_eq!(
        (&found["found"][0]["base_url"], &found["found"][0]["models"]),
        (&json!(base_url), &json!(["scripted-1"]))
    );
    let unknown = json!({ "base_url": base_url, "model": "another" });
    assert_eq!(served.post("/api/models", &unknown).refused(404).0, "not_found");
    let taken = served.post("/api/models", &json!({ "base_url": base_url, "model": "scripted-1" }));
    assert_eq!((taken.status, &taken.json()["local"]), (201, &json!(true)));
    assert_eq!(served.get("/api/models").good()["models"][0]["model"], "scripted-1");
    assert!(std::fs::read_to_string(served.world.path("user/lapidary.toml")).unwrap().contains(&base_url));
}

#[test]
fn no_address_is_gone_to_but_one_of_this_machine() {
    let (served, model) = (Served::new(), Model::start());
    let closed = format!("http://127.0.0.1:{}/v1", closed_port());
    let port = model.port;
    for base_url in [
        closed,
        format!("http://localhost:{port}/v1"),
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}@example.org/v1"),
        format!("http://127.0.0.1:{port}/v1/../../v1"),
        "http://169.254.169.254/v1".to_owned(),
        "https://example.org/v1".to_owned(),
        String::new(),
    ] {
        let answer = served.post("/api/models", &json!({ "base_url": base_url, "model": "scripted-1" }));
        assert_eq!(answer.refused(404).0, "not_found", "{base_url}");
    }
    assert!(model.asked().is_empty());
}

#[test]
fn the_models_of_the_settings_are_told_in_their_order_without_their_addresses() {
    let model = Model::start();
    let config = format!(
        "{}\n[[models]]\nname = \"far\"\nbase_url = \"https://models.example/v1\"\nmodel = \"big\"\n",
        model.config()
    );
    let files = |root: &std::path::Path| std::fs::write(root.join("user/lapidary.toml"), config).unwrap();
    let served = Served::of(World::prepared(files, |b| b));
    let told = served.get("/api/models").good();
    let names: Vec<&str> = told["models"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["scripted", "far"]);
    assert_eq!((&told["models"][0]["vision"], &told["models"][0]["context"]), (&json!(true), &json!(8192)));
    assert_eq!(told["models"][1]["local"], false);
    assert!(!told.to_string().contains("models.example"), "{told}");
}
