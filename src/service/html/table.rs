//! Tables as Markdown. The converter's own writer fills every cell up to the widest of its column, so that one long cell
//! multiplies with the rows; this one does not. Cells travel up as text between marks that no page can hold.

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdownBuilder};

/// Before a row.
const ROW: char = '\u{fdd0}';
/// Before a cell.
const CELL: char = '\u{fdd1}';
/// Before a cell that is a heading.
const HEAD: char = '\u{fdd2}';

/// The converter with our tables.
pub(super) fn handled(builder: HtmlToMarkdownBuilder) -> HtmlToMarkdownBuilder {
    builder
        .add_handler(vec!["td"], |all: &dyn Handlers, cell: Element| marked(all, &cell, CELL))
        .add_handler(vec!["th"], |all: &dyn Handlers, cell: Element| marked(all, &cell, HEAD))
        .add_handler(vec!["tr"], |all: &dyn Handlers, row: Element| marked(all, &row, ROW))
        .add_handler(vec!["tbody", "tfoot", "colgroup", "caption"], |all: &dyn Handlers, part: Element| {
            Some(all.walk_children(part.node))
        })
        .add_handler(vec!["thead"], |all: &dyn Handlers, part: Element| {
            Some(all.walk_children(part.node).content.replace(CELL, &HEAD.to_string()).into())
        })
        .add_handler(vec!["table"], |all: &dyn Handlers, table: Element| {
            Some(written(&all.walk_children(table.node).content).into())
        })
}

/// A text without any marks left, such as those a page smuggled in as character references.
pub(super) fn without_marks(text: &str) -> String {
    text.replace([ROW, CELL, HEAD], "")
}

fn marked(all: &dyn Handlers, element: &Element, mark: char) -> Option<HandlerResult> {
    Some(format!("{mark}{}", all.walk_children(element.node).content).into())
}

/// What stood in a table, by its marks: a table with headings becomes one in Markdown, any other was there for the layout
/// and becomes its cells, one after the other.
fn written(content: &str) -> String {
    let mut rows = content.split(ROW);
    let before = without_marks(rows.next().unwrap_or_default());
    let with_headings = content.contains(HEAD);
    let mut out = String::from("\n\n");
    // Readers drop what stands beyond the first row's cells, and fill up shorter rows by themselves.
    let width = content.split(ROW).skip(1).map(|row| row.matches([CELL, HEAD]).count()).max().unwrap_or_default();
    let mut is_first = true;
    if !before.trim().is_empty() {
        out.push_str(before.trim());
        out.push_str("\n\n");
    }
    for row in rows {
        // What stands before the first cell is white space.
        let cells = row.split([CELL, HEAD]).skip(1);
        if !with_headings {
            for cell in cells.map(str::trim).filter(|cell| !cell.is_empty()) {
                out.push_str(cell);
                out.push_str("\n\n");
            }
            continue;
        }
        let cells: Vec<String> = cells.map(one_line).collect();
        if cells.is_empty() {
            continue;
        }
        out.push_str(&format!("| {} |", cells.join(" | ")));
        if std::mem::take(&mut is_first) {
            out.push_str(&"  |".repeat(width - cells.len()));
            out.push_str(&format!("\n|{}", " --- |".repeat(width)));
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

fn one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(html: &str) -> String {
        without_marks(handled(HtmlToMarkdownBuilder::new()).build().convert(html).unwrap_or_default().trim())
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
}
