//! Pages as Markdown: what a reader of the page finds is found in the Markdown too, whatever the page looks like.

use crate::kept::{self, KINDS};
use lapidary::service::html;

/// Each kind of part of the page, and how much of it the Markdown has.
fn all_is_kept(page: &str) {
    let there = kept::of_page(page);
    let markdown = html::to_markdown(page).unwrap();
    let made = kept::of_markdown(&markdown);
    for (kind, name) in KINDS.iter().enumerate() {
        let lost = there.lost_in(&made, kind);
        assert!(lost.is_empty(), "{name}: {lost:?} of\n{page}\nis not in\n{markdown}");
    }
}

#[test]
fn headings_links_tables_lists_and_code_are_kept() {
    let page = kept::made(1 << 15);
    assert!(kept::of_page(&page).counts().iter().all(|&n| n > 10), "every kind is there to be kept");
    all_is_kept(&page);
}

#[test]
fn what_pages_do_to_their_parts_loses_none() {
    for page in [
        // Anchors, emphasis and code inside headings and links.
        "<h2><a id=x></a>A <em>long</em> <code>name()</code></h2><p><a href=/a><code>f_x</code> and <b>more</b></a></p>",
        "<h1>Title<a class=headerlink href=#title>¶</a></h1><p>x",
        // Items with paragraphs, code and lists of their own.
        "<ul><li><p>one</p><pre>code\n  more</pre></li><li>two<ol><li>three<li>four</ol></ul>",
        "<ol start=7><li>seven<li>eight</ol><dl><dt>term<dd>what it is</dl>",
        // Cells with bars, breaks and code.
        "<table><tr><th>a|b<th>c<tr><td><code>x | y</code><td>two<br>lines</table>",
        "<table><thead><tr><td>h</td></tr></thead><tr><th>r</th><td><a href=u>v</a></td></tr></table>",
        // Code with everything that Markdown would read.
        "<pre><code>```\n# no heading\n* no item\n&lt;b&gt; &amp;amp;\n\n\n    deep\n```</code></pre>",
        "<p>Say <code>`tick`</code>, <code>a  b</code> and <code>``</code>.</p>",
        "<pre>first\n\n\n\nafter three empty lines</pre>",
        // Marks in the text, which stay text.
        "<p>1. no list</p><p># no heading</p><p>* no item, a_b_c, [no](link) &lt;div&gt;</p><h3>1. One * two</h3>",
        "<p><a href=\"/with space (and more)\">paren</a> <a href='/a_b*c'>stars</a></p>",
    ] {
        all_is_kept(page);
    }
}

#[test]
fn the_rows_of_data_are_kept_with_and_without_headings() {
    for (page, cells) in [
        ("<table><tr><td>Name<td>Price<tr><td>Tea<td>3<tr><td>Cake<td>4</table>", 6),
        ("<table border=1><tr><td>a<td><p>b<p>c<tr><td>d<td>e</table>", 4),
        ("<table><caption>C</caption><tr><td>a<td>b<tr><td>c<td>d</table>", 4),
        ("<table><tr><td scope=col>a<td scope=col>b<tr><td>1<td>2</table>", 4),
        ("<table><tr><td colspan=2>title<tr><td>a<td>b<tr><td>c<td><a href=/d>d</a></table>", 4),
        ("<table><tr><th>Born<td>1900<tr><th>Died<td>1990</table>", 4),
        ("<table><tr><td>a|b<td><code>x | y</code><tr><td>1<td><b>2</b></table>", 4),
        ("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>", 0),
        ("<table><tr><td><a href=/a>a</a><td><a href=/b>b</a><tr><td><a href=/c>c</a><td><a href=/d>d</a></table>", 0),
        ("<table><tr><td>menu<td><h1>Page</h1><p>text<tr><td>a<td>b</table>", 0),
    ] {
        assert_eq!(kept::of_page(page).counts()[2], cells, "{page}");
        let made = kept::of_markdown(&html::to_markdown(page).unwrap());
        assert_eq!(made.counts()[2], cells, "{page}");
        all_is_kept(page);
    }
}
