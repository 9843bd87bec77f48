//! Tables as Markdown: which of them hold data and which are there for the layout, and their rows. The converter's own
//! writer fills every cell up to the widest of its column, so that one long cell multiplies with the rows; this one does not.
//! Cells travel up as text between marks that no page can hold.

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdownBuilder};

/// Before a row.
const ROW: char = '\u{fdd0}';
/// Before a cell.
const CELL: char = '\u{fdd1}';
/// Before a cell that is a heading.
const HEAD: char = '\u{fdd2}';
/// Before what a table became, so that a table around it sees it.
const TABLE: char = '\u{fdd3}';
/// Characters of a cell that nothing says is one of data.
const SHORT: usize = 120;

/// The converter with our tables.
pub(super) fn handled(builder: HtmlToMarkdownBuilder) -> HtmlToMarkdownBuilder {
    builder
        .add_handler(vec!["td"], |all: &dyn Handlers, cell: Element| {
            let mark = if attribute(&cell, "scope").is_some() { HEAD } else { CELL };
            marked(all, &cell, mark)
        })
        .add_handler(vec!["th"], |all: &dyn Handlers, cell: Element| marked(all, &cell, HEAD))
        .add_handler(vec!["tr"], |all: &dyn Handlers, row: Element| marked(all, &row, ROW))
        .add_handler(vec!["tbody", "tfoot", "colgroup", "caption"], |all: &dyn Handlers, part: Element| {
            Some(all.walk_children(part.node))
        })
        .add_handler(vec!["thead"], |all: &dyn Handlers, part: Element| {
            Some(all.walk_children(part.node).content.replace(CELL, &HEAD.to_string()).into())
        })
        .add_handler(vec!["table"], |all: &dyn Handlers, table: Element| {
            Some(written(&all.walk_children(table.node).content, said(&table)).into())
        })
}

/// A text without any marks left, such as those a page smuggled in as character references.
pub(super) fn without_marks(text: &str) -> String {
    text.replace([ROW, CELL, HEAD, TABLE], "")
}

/// Attributes that tell data from layout; all others of these elements say nothing that Markdown has words for.
pub(super) fn is_telling(tag: &str, attribute: &str) -> bool {
    match tag {
        "table" => matches!(attribute, "role" | "border" | "summary"),
        "td" => attribute == "scope",
        _ => false,
    }
}

fn marked(all: &dyn Handlers, element: &Element, mark: char) -> Option<HandlerResult> {
    Some(format!("{mark}{}", all.walk_children(element.node).content).into())
}

fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    element.attrs.iter().find(|a| &*a.name.local == name).map(|a| a.value.trim())
}

/// What a table says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Layout,
    Data,
    Nothing,
}

fn said(table: &Element) -> Said {
    if attribute(table, "role").is_some_and(|role| matches!(role, "presentation" | "none")) {
        Said::Layout
    } else if attribute(table, "border").is_some_and(|border| border != "0")
        || attribute(table, "summary").is_some_and(|summary| !summary.is_empty())
    {
        Said::Data
    } else {
        Said::Nothing
    }
}

/// A cell as it came up: its Markdown, and whether it is a heading.
struct Cell<'t> {
    text: &'t str,
    is_head: bool,
}

/// What stood in a table, by its marks: data becomes a table in Markdown; what was there for the layout becomes its cells, one
/// after the other.
fn written(content: &str, said: Said) -> String {
    let holds_table = content.contains(TABLE);
    let plain = if holds_table { content.replace(TABLE, "") } else { String::new() };
    let mut parts = if holds_table { plain.as_str() } else { content }.split(ROW);
    let before = without_marks(parts.next().unwrap_or_default());
    let before = before.trim();
    let rows: Vec<Vec<Cell>> = parts.map(cells).filter(|row| !row.is_empty()).collect();
    let said = if said == Said::Nothing && !before.is_empty() { Said::Data } else { said };
    let with_headings = rows.iter().flatten().any(|cell| cell.is_head);
    let data = match said {
        Said::Layout => 0..0,
        _ if with_headings => 0..rows.len(),
        // The first and the last may be a title and a note over the whole width.
        _ if holds_table => 0..0,
        Said::Data if rows.len() > 1 && rows.iter().flatten().all(|cell| !has_block(cell.text)) => 0..rows.len(),
        _ => between_titles(&rows),
    };
    let mut out = String::new();
    let mut paragraph = |text: &str| {
        if !text.is_empty() {
            out.push_str(text);
            out.push_str("\n\n");
        }
    };
    paragraph(before);
    rows[..data.start].iter().flatten().for_each(|cell| paragraph(cell.text.trim()));
    if !data.is_empty() {
        paragraph(&lines(&rows[data.clone()]));
    }
    rows[data.end..].iter().flatten().for_each(|cell| paragraph(cell.text.trim()));
    if out.is_empty() { out } else { format!("\n\n{TABLE}{out}") }
}

fn cells(row: &str) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    // What stands before the first cell is white space.
    let mut rest = row.find([CELL, HEAD]).map_or("", |at| &row[at..]);
    while let Some(mark) = rest.chars().next() {
        let inside = &rest[mark.len_utf8()..];
        let end = inside.find([CELL, HEAD]).unwrap_or(inside.len());
        cells.push(Cell { text: &inside[..end], is_head: mark == HEAD });
        rest = &inside[end..];
    }
    cells
}

/// Rows as a table. The first is its heading where it is made of headings, or else there is an empty one.
fn lines(rows: &[Vec<Cell>]) -> String {
    // Readers drop what stands beyond the first row's cells, and fill up shorter rows by themselves.
    let width = rows.iter().map(Vec::len).max().unwrap_or_default();
    let is_heading = |row: &&Vec<Cell>| row.iter().all(|cell| cell.is_head || cell.text.trim().is_empty());
    let (heading, rows) = match rows.split_first().filter(|(first, _)| is_heading(first)) {
        Some((first, rest)) => (first.as_slice(), rest),
        None => (&[][..], rows),
    };
    let mut out = String::new();
    line(heading, &mut out);
    out.push_str(&"  |".repeat(width - heading.len()));
    out.push_str(&format!("\n|{}\n", " --- |".repeat(width)));
    for row in rows {
        line(row, &mut out);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

fn line(cells: &[Cell], out: &mut String) {
    out.push('|');
    for cell in cells {
        out.push(' ');
        out.push_str(&one_line(cell.text));
        out.push_str(" |");
    }
}

fn one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// The rows that are data though nothing says so: two or more, each with two or more cells of few words in one paragraph, and
/// not only links, pictures or the fields of a form. Rows of one cell above and below are titles and notes.
fn between_titles(rows: &[Vec<Cell>]) -> std::ops::Range<usize> {
    let Some(first) = rows.iter().position(|row| row.len() > 1) else { return 0..0 };
    let last = rows.iter().rposition(|row| row.len() > 1).unwrap_or(first);
    let data = &rows[first..=last];
    let mut full_rows = 0;
    let mut outside_links = false;
    for row in data {
        if row.len() < 2 {
            return 0..0;
        }
        let mut filled = 0;
        for cell in row {
            let words = Words::of(cell.text);
            if words.count > SHORT || words.has_picture || has_block(cell.text) || cell.text.trim().contains("\n\n") {
                return 0..0;
            }
            filled += usize::from(words.count > 0);
            outside_links |= words.outside_links;
        }
        full_rows += usize::from(filled > 1);
    }
    if full_rows > 1 && outside_links { first..last + 1 } else { 0..0 }
}

/// Whether a cell holds a list, code, a heading or a quotation, which have no place in a line.
fn has_block(cell: &str) -> bool {
    cell.lines().any(|line| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        ["* ", "- ", "+ ", "> ", "```", "# ", "## ", "### ", "#### ", "##### ", "###### "]
            .iter()
            .any(|mark| line.starts_with(mark))
            || (digits.len() < line.len() && digits.starts_with(". "))
    })
}

/// What a reader sees of a piece of Markdown.
#[derive(Default)]
struct Words {
    /// Characters, without the addresses of links.
    count: usize,
    has_picture: bool,
    /// Whether letters or digits stand outside links.
    outside_links: bool,
}

impl Words {
    fn of(markdown: &str) -> Words {
        let mut words = Words::default();
        let mut in_link = 0_usize;
        let mut chars = markdown.trim().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    words.count += usize::from(chars.next().is_some());
                }
                '!' if chars.peek() == Some(&'[') => words.has_picture = true,
                '[' => in_link += 1,
                ']' => {
                    in_link = in_link.saturating_sub(1);
                    if chars.next_if_eq(&'(').is_some() {
                        let mut open = 1_usize;
                        while open > 0
                            && let Some(c) = chars.next()
                        {
                            match c {
                                '\\' => {
                                    chars.next();
                                }
                                '(' => open += 1,
                                ')' => open -= 1,
                                _ => {}
                            }
                        }
                    }
                }
                other => {
                    words.count += 1;
                    words.outside_links |= in_link == 0 && other.is_alphanumeric();
                }
            }
        }
        words
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(html: &str) -> String {
        without_marks(&handled(HtmlToMarkdownBuilder::new()).build().convert(html).unwrap_or_default())
            .trim()
            .to_owned()
    }

    #[test]
    fn tables_with_headings_are_tables_and_others_are_their_cells() {
        for (html, want) in [
            (
                "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
                "| a | b |\n| --- | --- |\n| 1 | 2 |",
            ),
            (
                "<table><thead><tr><td>a</td></tr></thead><tbody><tr><td>1</td></tr></tbody></table>",
                "| a |\n| --- |\n| 1 |",
            ),
            ("<table><caption>C</caption><tr><th>a</th></tr></table>", "C\n\n| a |\n| --- |"),
            ("<table><tr><th>a|b</th></tr><tr><td><p>x</p><p>y</p></td></tr></table>", "| a\\|b |\n| --- |\n| x y |"),
            ("<table><tr><td>x</td><td><p>y</p></td></tr><tr><td></td></tr></table>", "x\n\ny"),
            (
                "<table><tr><td></td><th>a</th></tr><tr><th>r</th><td>1</td></tr></table>",
                "|  | a |\n| --- | --- |\n| r | 1 |",
            ),
            (
                "<table><tr><th>Born</th><td>1900</td></tr><tr><th>Died</th><td>1990</td></tr></table>",
                "|  |  |\n| --- | --- |\n| Born | 1900 |\n| Died | 1990 |",
            ),
            ("<table><tr><td><table><tr><th>a</th></tr></table></td></tr></table>", "| a |\n| --- |"),
            (
                "<table><tr><th>a</th></tr><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
                "| a |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |",
            ),
            ("<table></table>", ""),
            ("<p>a&#xfdd0;b</p>", "ab"),
        ] {
            assert_eq!(table(html), want, "{html}");
        }
    }

    #[test]
    fn data_keeps_its_rows_and_layout_does_not_become_a_table() {
        let row = |cells: &[&str]| {
            let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr>{cells}</tr>")
        };
        let two = format!("{}{}", row(&["Name", "Price"]), row(&["Tea", "3"]));
        let long = "word ".repeat(40);
        let empty_heading = "|  |  |\n| --- | --- |\n";
        let as_data = format!("{empty_heading}| Name | Price |\n| Tea | 3 |");
        let as_cells = "Name\n\nPrice\n\nTea\n\n3".to_owned();
        let data = [
            (format!("<table>{two}</table>"), as_data.clone()),
            (format!("<table border=0 width='100%'>{two}</table>"), as_data.clone()),
            (format!("<table border=1>{two}</table>"), as_data.clone()),
            (format!("<table><caption>Menu</caption>{two}</table>"), format!("Menu\n\n{as_data}")),
            (
                format!("<table><thead>{}</thead>{}</table>", row(&["Name", "Price"]), row(&["Tea", "3"])),
                "| Name | Price |\n| --- | --- |\n| Tea | 3 |".to_owned(),
            ),
            (
                "<table><tr><td scope=col>Name</td><td scope=col>Price</td></tr><tr><td>Tea</td><td>3</td></tr></table>"
                    .to_owned(),
                "| Name | Price |\n| --- | --- |\n| Tea | 3 |".to_owned(),
            ),
            // A cell may be empty, a link, or emphasized.
            (
                format!("<table>{two}{}{}</table>", row(&["<b>Milk</b>", ""]), row(&["<a href=/c>Cake</a>", "4"])),
                format!("{as_data}\n| **Milk** |  |\n| [Cake](/c) | 4 |"),
            ),
            // A title and a note over the whole width.
            (
                format!("<table><tr><td colspan=2>Menu</td></tr>{two}<tr><td colspan=2>with tax</td></tr></table>"),
                format!("Menu\n\n{as_data}\n\nwith tax"),
            ),
            // An infobox: a picture, a name, then what is what.
            (
                format!("<table><tr><td colspan=2><img src=p.png alt=Pot></td></tr>{two}</table>"),
                format!("![Pot](p.png)\n\n{as_data}"),
            ),
            // What is said to be data may have long cells.
            (
                format!("<table summary='What it costs'>{}{}</table>", row(&["a", &long]), row(&["b", "<p>c<p>d"])),
                format!("{empty_heading}| a | {} |\n| b | c d |", long.trim()),
            ),
        ];
        let layout = [
            (format!("<table role=presentation>{two}</table>"), as_cells.clone()),
            (format!("<table role=none border=1>{two}</table>"), as_cells),
            // One row, or one column.
            (format!("<table>{}</table>", row(&["Name", "Price"])), "Name\n\nPrice".to_owned()),
            (format!("<table>{}{}</table>", row(&["a"]), row(&["b"])), "a\n\nb".to_owned()),
            (format!("<table border=1>{}</table>", row(&["a box"])), "a box".to_owned()),
            // A menu beside a text, as pages once were.
            (
                format!("<table>{}{}</table>", row(&["top", "bottom"]), row(&["menu", &long])),
                format!("top\n\nbottom\n\nmenu\n\n{}", long.trim()),
            ),
            // Only links.
            (
                format!(
                    "<table>{}{}</table>",
                    row(&["<a href=/a>a</a>", "<a href=/b>b</a>"]),
                    row(&["<a href=/c(1)>c</a>", "<a href=/d>d</a>"])
                ),
                "[a](/a)\n\n[b](/b)\n\n[c](</c(1)>)\n\n[d](/d)".replace("</c(1)>", "/c\\(1\\)"),
            ),
            // A forum: who wrote with a picture, and what.
            (
                format!("<table>{0}{0}</table>", row(&["<img src=a.png alt=Ann>", "Hello"])),
                "![Ann](a.png)\n\nHello\n\n![Ann](a.png)\n\nHello".to_owned(),
            ),
            (
                format!("<table>{0}{0}</table>", row(&["Ann", "<p>Hello<p>Bye"])),
                "Ann\n\nHello\n\nBye\n\nAnn\n\nHello\n\nBye".to_owned(),
            ),
            (
                format!("<table border=1>{0}{0}</table>", row(&["a", "<ul><li>b</ul>"])),
                "a\n\n*   b\n\na\n\n*   b".to_owned(),
            ),
            // A form: words with fields beside them.
            (
                format!("<table>{}{}</table>", row(&["User", "<input>"]), row(&["Password", ""])),
                "User\n\nPassword".to_owned(),
            ),
            // Tables in tables: the inner one is data, or neither is.
            (
                format!("<table>{0}{0}</table>", row(&["a", &format!("<table>{two}</table>")])),
                format!("a\n\n{as_data}\n\na\n\n{as_data}"),
            ),
            (format!("<table>{0}{0}</table>", row(&["a", "<table><tr><td>b</table>"])), "a\n\nb\n\na\n\nb".to_owned()),
        ];
        for (html, want) in data.into_iter().chain(layout) {
            assert_eq!(crate::service::html::to_markdown(&html).unwrap(), want, "{html}");
        }
    }
}
