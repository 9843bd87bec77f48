//! Pages of the usual kinds, and what of them is there to be read.

use super::*;
use crate::service::html::to_markdown;

fn on() -> Result<()> {
    Ok(())
}

fn read(html: &str) -> Article {
    article(html, Some("https://a.example/dir/page"), &on).unwrap()
}

fn paragraph(n: usize) -> String {
    format!("<p>Paragraph {n} tells of tea, of milk, and of how long the water boils, which takes a while.</p>")
}

fn paragraphs(n: usize) -> String {
    (1..=n).map(paragraph).collect()
}

const MENU: &str =
    "<nav><a href=/>Home</a> <a href=/b>Shop</a></nav><div class='cookie-notice'>We use cookies, as all do.</div>";

#[test]
fn menus_notices_and_other_pages_are_left_out_whatever_marks_the_text() {
    let body = paragraphs(5);
    for page in [
        format!("{MENU}<article><h1>Tea</h1>{body}</article><footer>Imprint</footer>"),
        format!("{MENU}<main><h1>Tea</h1>{body}</main><aside>Buy now</aside>"),
        format!(
            "{MENU}<div id=content><div class=post-body><h1>Tea</h1>{body}</div></div><div class=sidebar><p>Buy now, buy more, buy it all.</p></div>"
        ),
        format!("<table><tr><td><a href=1>one</a><a href=2>two</a></td><td><h1>Tea</h1>{body}</td></tr></table>"),
        format!("{MENU}<form><div><div><h1>Tea</h1>{body}</div></div></form><div role=complementary>Buy now</div>"),
        format!("<div class=page-with-sidebar><div class=share><a href=x>Share</a></div><div>{body}</div></div>"),
    ] {
        let page = format!("<html lang=en><head><title>Tea | Shop</title></head><body>{page}</body></html>");
        let read = read(&page);
        assert!(!read.whole, "{page}");
        let markdown = to_markdown(&read.html).unwrap();
        assert!(markdown.contains("Paragraph 1 ") && markdown.contains("Paragraph 5 "), "{markdown}");
        for noise in ["Home", "cookies", "Imprint", "Buy now", "Share", "two"] {
            assert!(!markdown.contains(noise), "{noise} in {markdown}\n{page}");
        }
        assert_eq!((read.title.as_str(), read.language.as_str()), ("Tea", "en"));
        assert!(!markdown.contains("# Tea"), "the heading stands in the title: {markdown}");
    }
}

#[test]
fn a_page_on_which_nothing_stands_out_is_given_whole() {
    let list: String = (0..40).map(|n| format!("<li><a href=/{n}>Link number {n} of the list</a></li>")).collect();
    for page in [
        format!("<h1>Links</h1><ul>{list}</ul>"),
        "<p>Short.</p>".to_owned(),
        "plain words".to_owned(),
        String::new(),
        "<html><body></body></html>".to_owned(),
    ] {
        assert!(read(&page).whole, "{page}");
    }
    let markdown = to_markdown(&read(&format!("<ul>{list}</ul>")).html).unwrap();
    assert!(markdown.contains("(https://a.example/0)") && markdown.contains("Link number 39"), "{markdown}");
}

#[test]
fn tables_lists_code_and_pictures_of_the_text_stay() {
    let page = format!(
        "<main>{}<h2>Prices</h2><table><tr><th>Tea</th><th>Price</th></tr><tr><td>Green</td><td>3.50</td></tr></table>\
         <pre><code class=language-rust>let x = 1 &lt; 2;</code></pre><ul><li>one</li><li>two</li></ul>\
         <img src=data:image/png;base64,AAAA data-src=../p.png alt=Pot><img src=data:image/png;base64,AAAA><img src=/dot.gif width=1 height=1>\
         <a href='javascript:void(0)'>press</a> <a href='?a=1&amp;b=2'>next</a> <a href='mailto:a@b.example'>mail</a></main>",
        paragraphs(4)
    );
    let markdown = to_markdown(&read(&page).html).unwrap();
    for part in [
        "## Prices",
        "| Tea | Price |",
        "| Green | 3.50 |",
        "let x = 1 < 2;",
        "one",
        "![Pot](https://a.example/p.png)",
        "[next](https://a.example/dir/page?a=1&b=2)",
        "[mail](mailto:a@b.example)",
        "press",
    ] {
        assert!(markdown.contains(part), "{part} is not in\n{markdown}");
    }
    assert!(
        !markdown.contains("base64") && !markdown.contains("dot.gif") && !markdown.contains("javascript"),
        "{markdown}"
    );
}

#[test]
fn what_the_page_says_of_itself_is_read_wherever_it_stands() {
    let body = paragraphs(4);
    let with = |head: &str, begin: &str| read(&format!("<head>{head}</head><body><main>{begin}{body}</main></body>"));
    let meta = with(
        "<title>x</title><meta property=og:title content='A &amp; B'><meta name=author content=Ann><meta property=og:site_name content=Shop>\
         <meta property=article:published_time content=2026-01-02><meta name=description content='About  tea'>",
        "",
    );
    assert_eq!((meta.title.as_str(), meta.byline.as_str(), meta.site.as_str()), ("A & B", "Ann", "Shop"));
    assert_eq!((meta.published.as_str(), meta.description.as_str()), ("2026-01-02", "About tea"));
    let stated = with(
        "<title>Tea - Shop</title><meta property=og:site_name content=Shop><script type='application/ld+json'>\
         {\"@graph\": [{\"author\": [{\"name\": \"Ann\"}, {\"name\": \"Bo\"}], \"datePublished\": \"2026-02-03\"}]}</script>",
        "",
    );
    assert_eq!(
        (stated.title.as_str(), stated.byline.as_str(), stated.published.as_str()),
        ("Tea", "Ann, Bo", "2026-02-03")
    );
    let marked = with("", "<h1>Tea</h1><div class=byline>By Ann</div><time datetime=2026-03-04>March</time>");
    assert_eq!(
        (marked.title.as_str(), marked.byline.as_str(), marked.published.as_str()),
        ("Tea", "Ann", "2026-03-04")
    );
    let none = with(
        "<script type='application/ld+json'>{broken</script><meta name=author content='https://x.example/ann'>",
        "",
    );
    assert_eq!((none.title.as_str(), none.byline.as_str()), ("", ""));
}

#[test]
fn sections_beside_each_other_are_one_text_and_headings_are_those_of_the_text() {
    let sections: String = (1..=4)
        .map(|n| {
            format!(
                "<div class=sect><h2><a href=#s{n}>Part {n}</a></h2><div class=sectionbody>{}</div></div>",
                paragraphs(n)
            )
        })
        .collect();
    let page = format!(
        "<title>Options - The book</title><h1 class=menu-title>The book</h1><ul><li><a href=/1>one</a></li></ul>\
         <div id=content><h1>Options<a href=#x>¶</a></h1>{sections}</div><p>Last updated.</p>"
    );
    let read = read(&page);
    assert_eq!((read.title.as_str(), read.whole), ("Options", false));
    let markdown = to_markdown(&read.html).unwrap();
    for n in 1..=4 {
        assert!(markdown.contains(&format!("## Part {n}\n")), "{markdown}");
    }
    assert!(!markdown.contains("¶") && !markdown.contains("The book") && !markdown.contains("Options"), "{markdown}");
}

#[test]
fn lists_of_links_in_a_text_go_unless_they_are_most_of_it() {
    let list = |n: usize| -> String { (0..n).map(|i| format!("<li><a href=/l{i}>Language {i}</a></li>")).collect() };
    let text =
        read(&format!("<main><ul>{}</ul>{}<ul><li><a href=/a>see this</a></li></ul></main>", list(20), paragraphs(9)));
    assert!(!text.html.contains("Language") && text.html.contains("see this"), "{}", text.html);
    let index =
        read(&format!("<main><p>The chapters of this book, and what they are about.</p><ul>{}</ul></main>", list(60)));
    assert!(index.html.contains("Language 59"), "{}", index.html);
}

#[test]
fn links_that_say_nothing_are_left_out() {
    let links = "<a href=/vote></a> <a href=/p><img src=/i.png alt=I></a> <a href='#top'>up</a> <a href=page#x>here</a> <a href=/b title=T>b</a>";
    let markdown = to_markdown(&read(&format!("<main>{}<p>{links}</p></main>", paragraphs(4))).html).unwrap();
    assert!(
        markdown.ends_with("[![I](https://a.example/i.png)](https://a.example/p) up here [b](https://a.example/b)"),
        "{markdown}"
    );
}

#[test]
fn hidden_parts_and_hostile_pages_do_no_harm() {
    let page = format!(
        "<main>{}<p style='display: none'>secret</p><p hidden>secret</p><div aria-hidden=true>secret</div></main>",
        paragraphs(4)
    );
    assert!(!read(&page).html.contains("secret"));
    assert!(article("<p>x", Some("no address"), &on).is_err());
    let wide = "<p class=comment>a, b".repeat(20_000);
    assert!(article(&wide, None, &on).is_ok());
    let deep = format!("<main>{}{}{}</main>", "<div>".repeat(400), paragraphs(9), "</div>".repeat(400));
    assert!(read(&deep).html.contains("Paragraph 9"));
    let stop = || Err(crate::base::error::Error::internal("stopped"));
    assert!(article("<p>x", None, &stop).is_err());
}
