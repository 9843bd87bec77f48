//! What Markdown becomes, and that nothing of what is written in it can become anything else.

use super::*;
use scraper::{Html, Node};

/// What may stand in the HTML, with its attributes.
const ELEMENTS: &[(&str, &[&str])] = &[
    ("p", &["class"]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("blockquote", &[]),
    ("pre", &["class"]),
    ("code", &["class"]),
    ("ul", &[]),
    ("ol", &["start"]),
    ("li", &[]),
    ("table", &[]),
    ("thead", &[]),
    ("tbody", &[]),
    ("tr", &[]),
    ("th", &["class"]),
    ("td", &["class"]),
    ("em", &[]),
    ("strong", &[]),
    ("del", &[]),
    ("a", &["href", "target", "rel"]),
    ("br", &[]),
    ("hr", &[]),
    ("span", &["class"]),
];

/// Reads the HTML as a browser does and looks at everything that is in it.
#[track_caller]
fn is_harmless(text: &str) -> String {
    let made = to_html(text);
    for frame in ["<html", "<body"] {
        assert!(!made.contains(frame), "{text:.200?} gives {made:.400?}");
    }
    let page = Html::parse_fragment(&made);
    for node in page.tree.nodes() {
        match node.value() {
            // The frame that the reader puts around a fragment; further ones it would have left out.
            Node::Element(element)
                if ["html", "body"].contains(&element.name()) && element.attrs().next().is_none() => {}
            Node::Element(element) => {
                let known = ELEMENTS.iter().find(|(name, _)| *name == element.name());
                let (_, attributes) =
                    known.unwrap_or_else(|| panic!("{text:.200?} gives {} in {made:.400?}", element.name()));
                for (name, value) in element.attrs() {
                    assert!(attributes.contains(&name), "{text:.200?} gives {name} in {made:.400?}");
                    if name == "href" {
                        let fine = ["http://", "https://", "mailto:", "#/", "/"].iter().any(|s| value.starts_with(s));
                        assert!(fine && !value.starts_with("//"), "{text:.200?} leads to {value:?}");
                        assert_eq!(element.attr("rel"), Some("noopener noreferrer"));
                        assert_eq!(element.attr("target"), Some("_blank"));
                    }
                }
            }
            Node::Text(_) | Node::Fragment | Node::Document => {}
            other => panic!("{text:.200?} gives {other:?}"),
        }
    }
    made
}

#[test]
fn markdown_becomes_the_elements_it_means() {
    let rel = "target=\"_blank\" rel=\"noopener noreferrer\"";
    let table = [
        ("Hello", "<p>Hello</p>\n".to_owned()),
        ("a *b* **c** ~~d~~ `e<`", "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e&lt;</code></p>\n".into()),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n".into()),
        ("# A\n## B\n### C\n#### D", "<h3>A</h3>\n<h4>B</h4>\n<h5>C</h5>\n<h6>D</h6>\n".into()),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>\n".into()),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n".into()),
        ("7. a\n8. b", "<ol start=\"7\">\n<li>a</li>\n<li>b</li>\n</ol>\n".into()),
        (
            "- [ ] a\n- [x] b",
            "<ul>\n<li><span class=\"task\">☐</span> a</li>\n<li><span class=\"task\">☑</span> b</li>\n</ul>\n".into(),
        ),
        ("```rust\nfn a() {}\n```", "<pre><code class=\"language-rust\">fn a() {}\n</code></pre>\n".into()),
        ("```C++ title=x\n1\n```", "<pre><code class=\"language-c++\">1\n</code></pre>\n".into()),
        ("    indented", "<pre><code>indented</code></pre>\n".into()),
        ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>\n".into()),
        (
            "|a|b|\n|:-|-:|\n|1|2|",
            "<table><thead><tr><th class=\"start\">a</th><th class=\"end\">b</th></tr></thead><tbody>\n<tr><td class=\"start\">1</td><td class=\"end\">2</td></tr>\n</tbody></table>\n".into(),
        ),
        ("[x](https://a.example/b?c=1&d=2)", format!("<p><a href=\"https://a.example/b?c=1&amp;d=2\" {rel}>x</a></p>\n")),
        ("[x](/api/tool-image/ab.png)", format!("<p><a href=\"/api/tool-image/ab.png\" {rel}>x</a></p>\n")),
        ("[x](#/journal)", format!("<p><a href=\"#/journal\" {rel}>x</a></p>\n")),
        ("<me@example.org>", format!("<p><a href=\"mailto:me@example.org\" {rel}>me@example.org</a></p>\n")),
        ("<https://a.example>", format!("<p><a href=\"https://a.example/\" {rel}>https://a.example</a></p>\n")),
        (
            "see https://a.example/x_y_z (or not).",
            format!("<p>see <a href=\"https://a.example/x_y_z\" {rel}>https://a.example/x_y_z</a> (or not).</p>\n"),
        ),
        (
            "(https://a.example/b_(c)).",
            format!("<p>(<a href=\"https://a.example/b_(c)\" {rel}>https://a.example/b_(c)</a>).</p>\n"),
        ),
        ("xhttps://a.example", "<p>xhttps://a.example</p>\n".into()),
        ("`https://a.example`", "<p><code>https://a.example</code></p>\n".into()),
        ("![a cat](https://a.example/cat.png)", format!("<p><a href=\"https://a.example/cat.png\" {rel}>a cat</a></p>\n")),
        ("![](https://a.example/cat.png)", format!("<p><a href=\"https://a.example/cat.png\" {rel}>picture</a></p>\n")),
        ("![it](img:0123456789ab.png)", format!("<p><a href=\"/api/tool-image/0123456789ab.png\" {rel}>it</a></p>\n")),
        (
            "[![a cat](https://a.example/cat.png)](https://b.example/)",
            format!("<p><a href=\"https://b.example/\" {rel}>a cat</a></p>\n"),
        ),
        ("a[^1]\n\n[^1]: b c", "<p>a[^1]</p>\n<p>[^1]: b c</p>\n".into()),
        ("$a$", "<p>$a$</p>\n".into()),
        ("", String::new()),
    ];
    for (text, wanted) in table {
        assert_eq!(is_harmless(text), wanted, "{text:.200?}");
    }
}

#[test]
fn hostile_markdown_stays_text() {
    // What would be an address, an element or an attribute stands between these, in the middle of what a reader sees anyway.
    let deep_quotes = ">".repeat(5000) + " x";
    let deep_lists: String = (0..400).map(|n| format!("{}- a\n", "  ".repeat(n))).collect();
    let emphasis = "*a ".repeat(4000);
    let brackets = "[".repeat(20_000);
    let parens = format!("[a]({}", "(".repeat(20_000));
    let ticks: String = (1..400).map(|n| "`".repeat(n) + " ").collect();
    let wide = format!("{}\n{}\n{}", "|a".repeat(3000), "|-".repeat(3000), "|\n".repeat(3000));
    let comments = "<!--".repeat(10_000);
    let stars = "**".repeat(10_000) + "a";
    let entities = "&#x6a;".repeat(2000);
    let table = [
        "<script>alert(1)</script>",
        "a <script src=//x></script> b",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<a href=javascript:alert(1)>x</a>",
        "<style>*{display:none}</style>",
        "<form action=/api/call><input name=tool></form>",
        "<meta http-equiv=refresh content='0;url=https://x'>",
        "<base href=https://evil.example/>",
        "<!-- --><img src=x>-->",
        "<![CDATA[<img src=x>]]>",
        "<?php ?><b>",
        "<div\n\n<script>alert(1)</script>",
        "<textarea><img src=x></textarea><title></title>",
        "<math><mtext><table><mglyph><style><img src=x>",
        "<noscript><p title=\"</noscript><img src=x>\">",
        "</p></div></body><h1>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#10;script:alert(1))",
        "[x](&#x6a;avascript:alert(1))",
        "[x](javascript&colon;alert(1))",
        "[x](&#1;javascript:alert(1))",
        "[x](vbscript:x)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](file:///etc/passwd)",
        "[x](blob:https://a/b)",
        "[x](//evil.example/)",
        "[x](/\\evil.example/)",
        "[x](\\\\evil.example/)",
        "[x](/&Tab;/evil.example/)",
        "[x](/&NewLine;/evil.example)",
        "[x](https://good.example@evil.example/)",
        "[x](https://u:p@evil.example/)",
        "[x](ftp://a/b)",
        "[x](intent://a#Intent;end)",
        "[x](<https://a.example/\" onclick=\"alert(1)>)",
        "[x](https://a.example/'onmouseover='alert(1))",
        "[x](https://a.example/ \"t\\\" onclick=alert(1) \\\"\")",
        "[x][r]\n\n[r]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "<data:text/html,x>",
        "![x](javascript:alert(1))",
        "![x](data:image/svg+xml,<svg onload=alert(1)>)",
        "![\" onerror=alert(1) x=\"](https://a.example/x.png)",
        "![<img src=x onerror=alert(1)>](https://a.example/x.png)",
        "![a [b](javascript:x) c](https://a.example/)",
        "[a ![b](https://c.example) [d](https://e.example)](https://f.example)",
        "```\"><script>alert(1)</script>\nx\n```",
        "```x\" onclick=\"alert(1)\nx\n```",
        "``` </code></pre><script>\n</code></pre><script>alert(1)</script>\n```",
        "`</code><script>alert(1)</script>`",
        "|a<script>|\n|-|\n|<img src=x onerror=alert(1)>|",
        "- <script>\n- </script>",
        "# <img src=x onerror=alert(1)>",
        "> <iframe src=x>",
        "https://a.example/\"onclick=alert(1)",
        "https://a.example/<script>",
        "http://",
        "https://[::1",
        "a\0b<\0script>",
        "\u{202e}[x](https://a.example)\u{202c}",
        "img:../../etc [x](img:../secret)",
        "{{constructor.constructor('alert(1)')()}}",
        &deep_quotes,
        &deep_lists,
        &emphasis,
        &brackets,
        &parens,
        &ticks,
        &wide,
        &comments,
        &stars,
        &entities,
    ];
    for text in table {
        let made = is_harmless(text);
        let mut depth = 0usize;
        let mut deepest = 0;
        for part in made.split('<').skip(1) {
            if part.starts_with('/') {
                depth -= 1;
            } else if !part.starts_with("br>") && !part.starts_with("hr>") {
                depth += 1;
                deepest = deepest.max(depth);
            }
        }
        assert_eq!(depth, 0, "{:.80}", text);
        assert!(deepest <= DEEPEST + 8, "{deepest} deep for {text:.80}");
    }
}

#[test]
fn where_a_link_may_not_lead_only_its_words_are_left() {
    for dest in
        ["javascript:a()", "data:text/html,x", "//evil.example", "/\\evil.example", "https://u@evil.example", "x:y"]
    {
        assert_eq!(to_html(&format!("[words]({dest})")), "<p>words</p>\n", "{dest}");
        assert_eq!(to_html(&format!("![words]({dest})")), "<p>words</p>\n", "{dest}");
        assert_eq!(to_html(&format!("![]({dest})")), "<p>picture</p>\n", "{dest}");
    }
    let far = format!("[a](https://a.example/{})", "x".repeat(FARTHEST));
    assert_eq!(to_html(&far), "<p>a</p>\n");
}

#[test]
fn a_text_beyond_the_bounds_is_shown_as_it_is() {
    let long = "*a* <b>\n".repeat(LONGEST / 8 + 1);
    let made = is_harmless(&long);
    assert!(made.starts_with("<pre class=\"plain\">*a* &lt;b&gt;"));
    // Few bytes that would become many.
    let cells = 3000;
    let swelling = format!("{}\n{}\n{}", "|a".repeat(cells), "|-".repeat(cells), "|x\n".repeat(cells));
    let made = is_harmless(&swelling);
    assert!(made.len() <= MOST + 1024, "{} bytes of {}", made.len(), swelling.len());
}

#[test]
fn the_last_block_is_what_may_still_change() {
    let table = [
        ("", 0),
        ("one", 0),
        ("one\n\ntwo", 5),
        ("# a\ntext", 4),
        ("a\n\n- b\n- c\n\n- d", 3),
        ("a\n\n```\nx\n\ny", 3),
        ("a\n\n---\n", 3),
        ("a\n\n|b|\n|-|\n|c|", 3),
        ("> a\n\nb\n\n<div>", 8),
    ];
    for (text, wanted) in table {
        assert_eq!(last_block(text), wanted, "{text:.200?}");
        let (done, open) = text.split_at(wanted);
        assert_eq!(format!("{}{}", to_html(done), to_html(open)), to_html(text), "{text:.200?}");
    }
}
