//! Pages of every sloppiness and malice, and what is left of them.

#![allow(clippy::unwrap_used)]

use super::*;

fn page(html: &str) -> String {
    tidy(html, Purpose::Page).unwrap()
}

#[test]
fn a_page_is_well_nested_afterwards() {
    for (html, want) in [
        ("", ""),
        ("text", "text"),
        ("a < b && c", "a &lt; b && c"),
        ("a <3 b", "a &lt;3 b"),
        ("&amp;&lt;&#x41;", "&amp;&lt;&#x41;"),
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<p>a<div>b</div>c", "<p>a</p><div>b</div>c"),
        ("<p><b>a<div>b", "<p><b>a</b></p><div>b</div>"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
        ("<b><i>x</b>y</i>", "<b><i>x</i></b>y"),
        ("</div>a</p>", "a"),
        ("<br/>a<hr>", "<br>a<hr>"),
        ("a</br>b", "a<br>b"),
        ("<h1>a<h2>b</h1>", "<h1>a</h1><h2>b</h2>"),
        ("<a href=1>x<a href=2>y", "<a href=\"1\">x</a><a href=\"2\">y</a>"),
        ("<div/>x", "<div>x</div>"),
        ("<svg><path d='x'/><g>t</g></svg>", "<svg><path d=\"x\"></path><g>t</g></svg>"),
        ("<DIV CLASS=A>x</Div>", "<div class=\"A\">x</div>"),
        ("<x a='1' a='2' b c=\"<>\">", "<x a=\"1\" b=\"\" c=\"<>\"></x>"),
        ("<x a='\"'>", "<x a=\"&quot;\"></x>"),
        ("<x =a=b>", "<x></x>"),
        ("<x a=b/c>", "<x a=\"b/c\"></x>"),
        ("<x a", ""),
        ("<x a='", ""),
        ("<1>", "&lt;1>"),
        ("<!-- <b> --->x", "x"),
        ("<!-->x", "x"),
        ("<!--->x", "x"),
        ("<!--a--!>x", "x"),
        ("<!-- never ends <b>", ""),
        ("<!DOCTYPE html>x<?php ?>y</>z", "xyz"),
        ("<script>if (a<b) '</b>'</script>x", "<script>if (a<b) '</b>'</script>x"),
        ("<script><!--<script></script>x", "<script></script>x"),
        ("<style>a<b</style>", "<style>a<b</style>"),
        ("<title>a<b></title>", "<title>a&lt;b></title>"),
        ("<noscript><img></noscript>x", "x"),
        ("<iframe src=a><b></iframe>x", "<iframe src=\"a\"></iframe>x"),
        ("<xmp><b></xmp>", "<pre>&lt;b></pre>"),
        ("a<plaintext><b></plaintext>", "a<pre>&lt;b>&lt;/plaintext></pre>"),
        ("<template><b>x</b></template>y", "y"),
        ("<html lang=en><body class=c>x</body></html>", "<html lang=\"en\"><body class=\"c\">x"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d"),
        ("<table> \n <td>a", "<table><td>a</td></table>"),
        ("<table>x<b>y</b></table>", "<table><tr><td>x<b>y</b></td></tr></table>"),
        ("<table><form><tr><td>a</form></table>", "<table><tr><td>a</td></tr></table>"),
        ("<td>a</td><td>b</td>", " a b"),
        ("<table><tr><td><b>a</td></b><td>c</table>", "<table><tr><td><b>a</b></td><td>c</td></tr></table>"),
        ("x\0y\u{fdd0}z", "xyz"),
    ] {
        assert_eq!(page(html), want, "{html}");
    }
}

#[test]
fn markdown_keeps_only_what_it_can_say() {
    for (html, want) in [
        ("<b class=x>a</b><b id=y>c</b>", "<b>ac</b>"),
        ("<b>a</b><strong>c</strong><em>d</em><i>e</i>", "<b>ac</b><i>de</i>"),
        ("<b>a</b> <b>c</b>", "<b>a</b> <b>c</b>"),
        ("<a href=1>a</a><a href=1>b</a>", "<a href=\"1\">a</a><a href=\"1\">b</a>"),
        ("<p>a</p><p>b</p>", "<p>a</p><p>b</p>"),
        ("<a href=x onclick=y title=z>a</a>", "<a href=\"x\" title=\"z\">a</a>"),
        ("<code class=language-rust>a</code>", "<code class=\"language-rust\">a</code>"),
        ("<pre>a\n <b>b</b><br>c</pre>", "<pre><code>a\n b\nc</code></pre>"),
        (
            "<pre>\n<code class=\"hljs language-c++\">a</code>\n</pre>",
            "<pre><code class=\"language-c++\">a\n</code></pre>",
        ),
        (
            "<div class=\"highlight-python3 x\"><div class=highlight><pre><span></span>a</pre></div></div><pre class=\"lang-\\'x\">b</pre>",
            "<div><div><pre><code class=\"language-python3\">a</code></pre></div></div><pre class=\"lang-\\'x\"><code>b</code></pre>",
        ),
        ("<div><pre><div>a</div><div>b</div>c</div>d", "<div><pre><code>a\nb\nc</code></pre></div>d"),
        ("<pre></pre><pre><img src=x><hr></pre>", "<pre><code></code></pre><pre><code></code></pre>"),
        ("<xmp><b></xmp>", "<pre><code>&lt;b></code></pre>"),
        ("<title>t</title><script>s</script><style>c</style>x", "x"),
    ] {
        assert_eq!(tidy(html, Purpose::Markdown).unwrap(), want, "{html}");
    }
}

#[test]
fn nesting_is_bounded_however_it_is_written() {
    for piece in [
        "<div>",
        "<b>",
        "<x>",
        "<x/>",
        "<div></x>",
        "<div><object></div>",
        "<svg>",
        "<table><tr><td>",
        "<ul><li>",
        "<p><object>",
        "<div x='>'>",
        "<a-b>",
        "<b><section>",
    ] {
        let error = tidy(&piece.repeat(20_000), Purpose::Page).unwrap_err();
        assert_eq!(error.code(), "too_large", "{piece}");
    }
    let many = tidy(&"<br>".repeat(MAX_TAGS + 1), Purpose::Page);
    assert_eq!(many.unwrap_err().code(), "too_large");
    // What the parser closes by itself does not add up.
    for piece in
        ["<p>a", "<li>a", "<option>a", "<h1>a", "<a>x", "<td>x", "<dt>a<dd>b", "<div></div>", "</div>", "<b></b>"]
    {
        assert!(tidy(&piece.repeat(20_000), Purpose::Page).is_ok(), "{piece}");
    }
}
