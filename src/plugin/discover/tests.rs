//! Which plugins are found, which of two wins, and what is said of the rest.

use super::*;

struct World {
    dir: tempfile::TempDir,
    paths: Paths,
}

fn world(files: &[&str]) -> World {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::at(dir.path().join("root"));
    paths.ensure().unwrap();
    let w = World { dir, paths };
    for file in files {
        w.write(file, "{}");
    }
    w
}

impl World {
    fn write(&self, path: &str, text: &str) {
        let path = self.paths.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&self, extra: &[PathBuf], stock: &dyn Stock) -> (Vec<String>, Vec<String>) {
        let found = discover(&self.paths, extra, stock);
        let plugins = found.plugins.iter().map(|f| format!("{} {}", f.name, f.origin.as_str())).collect();
        let notices = found.notices.iter().map(|n| format!("{}: {}", n.subject, n.message)).collect();
        (plugins, notices)
    }

    fn found(&self, name: &str) -> Found {
        discover(&self.paths, &[], &Two).plugins.into_iter().find(|f| f.name == name).unwrap()
    }
}

struct Two;
impl Stock for Two {
    fn plugins(&self) -> Vec<&'static str> {
        vec!["clock", "dice"]
    }
    fn read(&self, plugin: &str, path: &str) -> Option<&'static [u8]> {
        (plugin == "clock" && path == "plugin.json").then_some(b"{}")
    }
    fn list(&self, _: &str) -> Vec<String> {
        vec!["plugin.json".into()]
    }
    fn std(&self, _: &str) -> Option<&'static [u8]> {
        None
    }
    fn std_modules(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn shipped_then_extra_then_folders_then_files_each_by_name() {
    let w = world(&[
        "user/tools/zebra.rhai",
        "user/tools/ant.rhai",
        "user/plugins/yak/plugin.json",
        "user/plugins/bee/plugin.json",
        "more/x.rhai",
        "more/cow/plugin.json",
        "more/readme.txt",
        "more/notes/a.txt",
    ]);
    let (plugins, notices) = w.look(&[w.paths.root().join("more")], &Two);
    assert_eq!(
        plugins,
        [
            "clock shipped",
            "dice shipped",
            "cow extra",
            "x extra",
            "bee plugin folder",
            "yak plugin folder",
            "ant tool file",
            "zebra tool file",
        ]
    );
    assert!(notices.is_empty(), "{notices:?}");
}

#[test]
fn the_roots_own_scripts_are_used_instead_of_the_embedded_ones() {
    let w = world(&["scripts/weather/plugin.json", "scripts/README.md"]);
    let (plugins, notices) = w.look(&[], &Two);
    assert_eq!(plugins, ["weather shipped"]);
    assert!(notices.is_empty(), "{notices:?}");
}

#[test]
fn the_users_plugin_takes_the_place_of_a_shipped_one_with_a_notice() {
    let w = world(&["user/tools/dice.rhai", "user/plugins/clock/plugin.json"]);
    let (plugins, notices) = w.look(&[], &Two);
    assert_eq!(plugins, ["clock plugin folder", "dice tool file"]);
    assert_eq!(
        notices,
        [
            "clock: user/plugins/clock takes the place of the shipped `clock`",
            "dice: user/tools/dice.rhai takes the place of the shipped `dice`",
        ]
    );
}

#[test]
fn a_folder_wins_over_a_file_of_the_same_name() {
    let w = world(&["user/tools/cards.rhai", "user/plugins/cards/plugin.json"]);
    let (plugins, notices) = w.look(&[], &Empty);
    assert_eq!(plugins, ["cards plugin folder"]);
    assert_eq!(
        notices,
        ["cards: user/plugins/cards takes the place of user/tools/cards.rhai; delete or rename one of the two"]
    );
}

#[test]
fn names_that_differ_in_case_only_are_one_plugin() {
    let w = world(&["user/tools/Dice.rhai"]);
    let (plugins, notices) = w.look(&[], &Two);
    assert_eq!(plugins, ["clock shipped", "Dice tool file"]);
    assert_eq!(notices.len(), 1);
}

#[test]
fn of_two_names_that_differ_in_case_the_live_one_stays_and_else_the_lower_one() {
    let w = world(&["user/tools/Ship.rhai", "user/tools/ship.rhai", "user/tools/ANT.rhai", "user/tools/Ant.rhai"]);
    let kept = |live: &str| {
        let found = discover_beside(&w.paths, &[], &Empty, &|name| name == live);
        let refused: Vec<String> = found.notices.iter().filter_map(|n| n.refused.clone()).collect();
        let names: Vec<String> = found.plugins.into_iter().map(|f| f.name).collect();
        (names.join(" "), refused.join(" "))
    };
    let rows = [
        ("", "ANT ship", "user/tools/Ant.rhai user/tools/Ship.rhai"),
        ("ship", "ANT ship", "user/tools/Ant.rhai user/tools/Ship.rhai"),
        ("Ship", "ANT Ship", "user/tools/Ant.rhai user/tools/ship.rhai"),
        ("Ant", "Ant ship", "user/tools/ANT.rhai user/tools/Ship.rhai"),
    ];
    for (live, names, refused) in rows {
        assert_eq!(kept(live), (names.to_owned(), refused.to_owned()), "{live}");
    }
    let found = discover(&w.paths, &[], &Empty);
    assert!(found.notices[1].message.starts_with("user/tools/Ship.rhai is not loaded"), "{:?}", found.notices);
}

#[test]
fn of_two_extra_places_the_first_one_counts() {
    let w = world(&["a/x.rhai", "b/x.rhai"]);
    let places = [w.paths.root().join("a"), w.paths.root().join("b")];
    let found = discover(&w.paths, &places, &Empty);
    assert_eq!(found.plugins.len(), 1);
    assert_eq!(found.plugins[0].shown("x.rhai"), "a/x.rhai");
    assert!(found.notices[0].message.starts_with("a/x.rhai takes the place of b/x.rhai"));
}

#[test]
fn an_extra_path_may_be_one_plugin_or_one_file_or_nothing() {
    let w = world(&["lab/weather/plugin.json", "lab/dice.rhai", "lab/notes.txt"]);
    let lab = w.paths.root().join("lab");
    assert_eq!(w.look(&[lab.join("weather")], &Empty).0, ["weather extra"]);
    assert_eq!(w.look(&[lab.join("dice.rhai")], &Empty).0, ["dice extra"]);
    assert!(w.look(&[lab.join("notes.txt")], &Empty).1[0].contains("ends in `.rhai`"));
    assert!(w.look(&[lab.join("gone")], &Empty).1[0].contains("no such folder"));
}

#[test]
fn litter_is_no_plugin_and_no_notice() {
    let w = world(&[
        "user/tools/.dice.rhai.swp",
        "user/tools/.hidden.rhai",
        "user/tools/#dice.rhai#",
        "user/tools/dice.rhai~",
        "user/tools/dice.rhai.bak",
        "user/tools/dice.tmp~",
        "user/tools/4913",
        "user/tools/README.md",
        "user/tools/tests/dice.rhai",
        "user/plugins/.git/config",
        "user/plugins/README.md",
    ]);
    let (plugins, notices) = w.look(&[], &Empty);
    assert!(plugins.is_empty() && notices.is_empty(), "{plugins:?} {notices:?}");
}

#[test]
fn what_looks_like_a_plugin_and_is_none_is_said() {
    let w = world(&[
        "user/tools/my tool.rhai",
        "user/tools/9lives.rhai",
        "user/tools/con.rhai",
        "user/tools/dice.rhai.txt",
        "user/tools/folder/plugin.json",
        "user/plugins/empty/tools/a.rhai",
        "user/plugins/loose.rhai",
        "user/plugins/a.b/plugin.json",
    ]);
    let (plugins, notices) = w.look(&[], &Empty);
    assert_eq!(plugins, ["9lives tool file"]);
    let rows = [
        ("user/plugins/a.b: ", "is not a plugin name"),
        ("user/plugins/empty: ", "no plugin.json"),
        ("user/plugins/loose.rhai: ", "user/tools/"),
        ("user/tools/con.rhai: ", "device"),
        ("user/tools/dice.rhai.txt: ", "`.rhai`"),
        ("user/tools/folder: ", "user/plugins/"),
        ("user/tools/my tool.rhai: ", "is not a plugin name"),
    ];
    assert_eq!(notices.len(), rows.len(), "{notices:#?}");
    for (notice, (subject, why)) in notices.iter().zip(rows) {
        assert!(notice.starts_with(subject) && notice.contains(why), "{notice}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_the_root_only() {
    use std::os::unix::fs::symlink;
    let w = world(&["kept/weather/plugin.json", "kept/dice.rhai"]);
    let outside = w.dir.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("plugin.json"), "{}").unwrap();
    fs::write(outside.join("x.rhai"), "").unwrap();
    let root = w.paths.root();
    symlink(root.join("kept/weather"), w.paths.plugins().join("weather")).unwrap();
    symlink(root.join("kept/dice.rhai"), w.paths.tools().join("dice.rhai")).unwrap();
    symlink(&outside, w.paths.plugins().join("outside")).unwrap();
    symlink(outside.join("x.rhai"), w.paths.tools().join("x.rhai")).unwrap();
    symlink(root.join("nowhere"), w.paths.tools().join("gone.rhai")).unwrap();
    let (plugins, notices) = w.look(&[], &Empty);
    assert_eq!(plugins, ["weather plugin folder", "dice tool file"]);
    assert_eq!(notices.len(), 3, "{notices:#?}");
    assert!(notices[0].starts_with("user/plugins/outside: the link leads out of the root"));
    assert!(notices[1].starts_with("user/tools/gone.rhai: the link leads to nothing"));
    assert!(notices[2].starts_with("user/tools/x.rhai: the link leads out of the root"));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_read_is_a_notice() {
    let w = world(&[]);
    fs::remove_dir(w.paths.tools()).unwrap();
    fs::write(w.paths.tools(), "a file in the way").unwrap();
    let (_, notices) = w.look(&[], &Empty);
    assert!(notices[0].starts_with("user/tools: cannot be listed"), "{notices:?}");
}

#[test]
fn a_missing_root_has_the_embedded_plugins() {
    let paths = Paths::at("/nowhere/at/all");
    let found = discover(&paths, &[], &Two);
    assert_eq!(found.plugins.len(), 2);
    assert!(found.notices.is_empty());
}

#[test]
fn files_are_read_by_their_path_in_the_plugin_and_never_outside() {
    let w = world(&["user/plugins/weather/plugin.json", "user/plugins/weather/tools/a.rhai", "user/tools/ant.rhai"]);
    let weather = w.found("weather");
    assert_eq!(read_plugin_file(&Two, &weather, "tools/a.rhai").unwrap(), b"{}");
    assert_eq!(weather.shown("tools/a.rhai"), "user/plugins/weather/tools/a.rhai");
    for path in ["../../tools/ant.rhai", "/etc/passwd", "tools/../plugin.json", "tools\\a.rhai"] {
        assert_eq!(read_plugin_file(&Two, &weather, path).unwrap_err().kind(), Kind::PermissionDenied, "{path}");
    }
    assert_eq!(read_plugin_file(&Two, &weather, "tools/b.rhai").unwrap_err().kind(), Kind::NotFound);
    let ant = w.found("ant");
    assert_eq!(read_plugin_file(&Two, &ant, "ant.rhai").unwrap(), b"{}");
    assert_eq!(ant.shown("ant.rhai"), "user/tools/ant.rhai");
    for path in ["other.rhai", "../ant.rhai", "ant"] {
        assert_eq!(read_plugin_file(&Two, &ant, path).unwrap_err().kind(), Kind::NotFound, "{path}");
    }
    let clock = w.found("clock");
    assert_eq!(read_plugin_file(&Two, &clock, "plugin.json").unwrap(), b"{}");
    assert_eq!(clock.shown("plugin.json"), "scripts/clock/plugin.json");
    assert_eq!(read_plugin_file(&Two, &clock, "x").unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_huge_script_is_refused_by_its_size_before_it_is_read() {
    let w = world(&["user/plugins/weather/plugin.json"]);
    let big = w.paths.tools().join("big.rhai");
    fs::File::create(&big).unwrap().set_len(20 << 20).unwrap();
    let e = read_plugin_file(&Two, &w.found("big"), "big.rhai").unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert!(e.message().contains("20971520") && e.message().contains("1048576"), "{e}");
    let data = w.paths.plugins().join("weather/data.bin");
    fs::File::create(&data).unwrap().set_len(2 << 20).unwrap();
    assert_eq!(read_plugin_file(&Two, &w.found("weather"), "data.bin").unwrap().len(), 2 << 20);
}

#[test]
fn listing_shows_every_file_but_litter() {
    let w = world(&[
        "user/plugins/weather/plugin.json",
        "user/plugins/weather/tools/b.rhai",
        "user/plugins/weather/tools/a.rhai",
        "user/plugins/weather/tools/.a.rhai.swp",
        "user/plugins/weather/tests/a.rhai",
        "user/plugins/weather/.git/HEAD",
        "user/tools/ant.rhai",
    ]);
    let listed = list_plugin_files(&Two, &w.found("weather")).unwrap();
    assert_eq!(listed, ["plugin.json", "tests/a.rhai", "tools/a.rhai", "tools/b.rhai"]);
    assert_eq!(list_plugin_files(&Two, &w.found("ant")).unwrap(), ["ant.rhai"]);
    assert_eq!(list_plugin_files(&Two, &w.found("clock")).unwrap(), ["plugin.json"]);
}

#[cfg(unix)]
#[test]
fn links_in_a_plugin_neither_leave_it_nor_multiply_it() {
    use std::os::unix::fs::symlink;
    let w = world(&["user/plugins/weather/plugin.json", "user/plugins/weather/a/x.txt", "user/tools/secret.rhai"]);
    let folder = w.paths.plugins().join("weather");
    for n in 0..6 {
        symlink(&folder, folder.join(format!("again{n}"))).unwrap();
        symlink(folder.join("a"), folder.join(format!("a/same{n}"))).unwrap();
    }
    symlink(w.paths.tools(), folder.join("out")).unwrap();
    let listed = list_plugin_files(&Two, &w.found("weather")).unwrap();
    assert!(listed.len() < 12, "{listed:#?}");
    assert!(listed.contains(&"a/x.txt".to_owned()) && !listed.iter().any(|p| p.contains("secret")), "{listed:#?}");
}
