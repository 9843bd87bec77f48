//! Whole files, written here: the ways in which text is put on a page, in which files are written, and in which they attack.

use super::*;
use base64::Engine as _;
use std::cell::Cell;
use std::io::Write;

mod locked;

fn on(_: usize) -> Result<()> {
    Ok(())
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A stream object with these entries.
fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", bytes.len());
    [head.as_bytes(), bytes, b"\nendstream"].concat()
}

/// A file of these objects, numbered from 1, the first of which is the catalog.
fn file(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut out = b"%PDF-1.5\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        out.extend(format!("{} 0 obj\n", at + 1).bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    out.extend(format!("trailer\n<< /Root 1 0 R {trailer} >>\nstartxref\n0\n%%EOF\n").bytes());
    out
}

/// A file of one page with that content, the font `F`, and more objects from number 6 on.
fn page_with(content: &[u8], entries: &str, font: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] /Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >> >>"
            .to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>".to_vec(),
        stream(entries, content),
        font.as_bytes().to_vec(),
    ];
    objects.extend(more.iter().cloned());
    file(&objects, "")
}

const HELVETICA: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

fn page(content: &str) -> Vec<u8> {
    page_with(content.as_bytes(), "", HELVETICA, &[])
}

#[track_caller]
fn read(bytes: &[u8]) -> Text {
    text(bytes, &Wanted::default(), &on).unwrap()
}

#[track_caller]
fn one(bytes: &[u8]) -> String {
    let read = read(bytes);
    assert_eq!((read.pages.len(), read.whole), (1, true), "{read:?}");
    read.pages.into_iter().next().unwrap()
}

#[test]
fn every_operator_that_writes_is_followed() {
    let rows = [
        ("BT /F 10 Tf 0 0 Td (Hello) Tj ET", "Hello"),
        ("BT /F 10 Tf (one) Tj 0 -12 Td (two) Tj ET", "one\ntwo"),
        ("BT /F 10 Tf 12 TL (one) Tj T* (two) Tj (three) ' 0 0 (four) \" ET", "one\ntwo\nthree\nfour"),
        ("BT /F 10 Tf 0 -12 TD (one) Tj T* (two) Tj ET", "one\ntwo"),
        ("BT /F 10 Tf [(Hel) 20 (lo) -300 (you)] TJ ET", "Hello you"),
        ("BT /F 10 Tf 3 Tc (wide) Tj ET BT /F 10 Tf 1 0 0 1 0 -12 Tm (next) Tj ET", "wide\nnext"),
        ("BT /F 1 Tf 10 0 0 10 0 0 Tm (scaled) Tj 3.3 0 Td (on) Tj ET", "scaled on"),
        ("q 2 0 0 2 0 0 cm BT /F 10 Tf (big) Tj ET Q BT /F 10 Tf 0 -40 Td (small) Tj ET", "big\n\nsmall"),
        ("BT /F 10 Tf (x) Tj 5 Ts (2) Tj ET", "x2"),
        ("BT /F 10 Tf 3 Tr (unseen) Tj ET", "unseen"),
        ("BT /F 10 Tf <48656c6c6f> Tj ET", "Hello"),
        ("BT /F 10 Tf (caf\\351 \\200) Tj ET", "café €"),
        ("BI /W 1 /H 1 ID \u{1}EI\u{2} (no) Tj EI BT /F 10 Tf (yes) Tj ET", "yes"),
        (
            "/Span << /ActualText (fish) >> BDC BT /F 10 Tf (x) Tj (y) Tj ET EMC BT /F 10 Tf 0 -12 Td (z) Tj ET",
            "fish\nz",
        ),
        ("/Span <</ActualText <FEFF00e9>>> BDC BT /F 10 Tf (x) Tj ET EMC", "é"),
        (") ] >> } BT /F 10 Tf (still) Tj ET", "still"),
        ("(no font) Tj BT /Nope 10 Tf (unknown) Tj ET", ""),
    ];
    for (content, text) in rows {
        assert_eq!(one(&page(content)), text, "{content}");
    }
}

#[test]
fn fonts_say_what_their_codes_stand_for() {
    let map = |body: &str| stream("", format!("/x begincmap {body} endcmap").as_bytes());
    let simple = |encoding: &str| format!("<< /Type /Font /Subtype /Type1 /BaseFont /Other {encoding} >>");
    let composite = |encoding: &str| {
        format!(
            "<< /Type /Font /Subtype /Type0 /Encoding {encoding} /ToUnicode 6 0 R /DescendantFonts [<< /DW 500 >>] >>"
        )
    };
    let none: Vec<Vec<u8>> = Vec::new();
    let rows = [
        (simple("/Encoding << /Differences [65 /eacute /f_i 3 /uni20AC] >>"), none.clone(), "(AB\\003)", "éfi€"),
        (simple("/Encoding /MacRomanEncoding"), none.clone(), "(\\216)", "é"),
        (simple(""), none.clone(), "(\\256')", "fi’"),
        (
            simple("/ToUnicode 6 0 R"),
            vec![map("1 beginbfchar <41> <00480069> endbfchar 1 beginbfrange <42> <44> <0061> endbfrange")],
            "(ABCDE)",
            "HiabcE",
        ),
        (
            composite("/Identity-H"),
            vec![map("2 beginbfrange <0001> <0003> <0078> <0010> <0011> [<D83DDE00> <0031>] endbfrange")],
            "<000100020003001000110999>",
            "xyz😀1",
        ),
        (composite("/UniJIS-UTF16-H"), none.clone(), "<65e5672cd83dde00>", "日本😀"),
        (composite("/90ms-RKSJ-H"), none.clone(), "<93fa967b41b1>", "日本Aｱ"),
        (composite("/GBK-EUC-H"), none, "<d6d0ce c441>", "中文A"),
        (
            composite("7 0 R"),
            vec![
                map("1 beginbfrange <20> <7e> <0020> <8140> <8142> <3042> endbfrange"),
                map("2 begincodespacerange <00> <80> <8140> <9ffc> endcodespacerange"),
            ],
            "<41814142>",
            "AぃB",
        ),
    ];
    for (font, more, shown, text) in rows {
        let content = format!("BT /F 10 Tf {shown} Tj ET");
        let read = one(&page_with(content.as_bytes(), "", &font, &more));
        assert!(read.starts_with(text), "{font} {shown}: {read}");
    }
    let unknown = page_with(b"BT /F 10 Tf <00010002> Tj ET", "", &composite("/Identity-H"), &[]);
    let read = read(&unknown);
    assert_eq!((read.pages, read.unknown), (vec![String::new()], 2));
}

#[test]
fn files_are_read_however_they_are_written() {
    let text = "BT /F 10 Tf (Hello) Tj ET";
    let packed = deflated(text.as_bytes());
    assert_eq!(one(&page_with(&packed, "/Filter /FlateDecode", HELVETICA, &[])), "Hello");
    assert_eq!(one(&page_with(&packed, "/Filter [/Fl]", HELVETICA, &[])), "Hello");
    let hex: String = packed.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(one(&page_with(hex.as_bytes(), "/Filter [/AHx /FlateDecode]", HELVETICA, &[])), "Hello");
    // A length that lies, one that stands elsewhere, none, and line ends of other systems.
    let plain = String::from_utf8(page(text)).unwrap();
    for (from, to) in [
        ("/Length 25", "/Length 3"),
        ("/Length 25", "/Length 99999"),
        ("/Length 25", "/Length 5 0 R"),
        ("/Length 25", ""),
        ("endobj", ""),
        ("trailer", ""),
        ("/Type /Page /", "/"),
        ("stream\n", "stream\r\n"),
        ("4 0 obj\n", "4 0 obj"),
        ("4 0 obj", "4\r\n0\tobj"),
    ] {
        assert!(plain.contains(from), "{from}");
        assert_eq!(one(plain.replace(from, to).as_bytes()), "Hello", "{from} -> {to}");
    }
    // Bytes before the head, and the last of two versions counts.
    let later = "4 0 obj << /Length 23 >> stream\nBT /F 10 Tf (New) Tj ET\nendstream endobj trailer << /Root 1 0 R >>";
    assert_eq!(one(format!("junk{plain}{later}").as_bytes()), "New");
    // Cut off behind the first text of the page.
    let long = String::from_utf8(page("BT /F 10 Tf (Hello) Tj 0 -12 Td (and more) Tj ET")).unwrap();
    let (start, end) = (long.find("4 0 obj").unwrap(), long.find("5 0 obj").unwrap());
    let at = long.find("0 -12").unwrap();
    let moved = format!("{}{}{}", &long[..start], &long[end..long.find("trailer").unwrap()], &long[start..at]);
    assert_eq!(one(moved.as_bytes()), "Hello");
}

#[test]
fn objects_in_object_streams_are_found_and_the_newest_counts() {
    let inner = [
        (1, "<< /Type /Catalog /Pages 2 0 R >>".to_owned()),
        (2, "<< /Type /Pages /Count 1 /Kids [3 0 R] /Resources << /Font << /F 5 0 R >> >> >>".to_owned()),
        (3, "<< /Type /Page /Contents 4 0 R >>".to_owned()),
        (5, HELVETICA.to_owned()),
    ];
    let (mut head, mut body) = (String::new(), String::new());
    for (number, object) in &inner {
        head.push_str(&format!("{number} {} ", body.len()));
        body.push_str(object);
        body.push(' ');
    }
    let packed = deflated(format!("{head}{body}").as_bytes());
    let entries = format!("/Type /ObjStm /N {} /First {} /Filter /FlateDecode", inner.len(), head.len());
    let objects = |content: &str| {
        let mut out = b"%PDF-1.5\n4 0 obj ".to_vec();
        out.extend(stream("", content.as_bytes()));
        out.extend(b" endobj\n9 0 obj ");
        out.extend(stream(&entries, &packed));
        out.extend(b" endobj\n10 0 obj ");
        out.extend(stream("/Type /XRef /Root 1 0 R /Info 11 0 R", b""));
        out.extend(b" endobj 11 0 obj << /Title (\xfe\xff\0T\0\xe9) /Author (Ann\n B) >> endobj\n");
        out
    };
    let plain = objects("BT /F 10 Tf (packed) Tj ET");
    let read = read(&plain);
    assert_eq!((read.title.as_str(), read.author.as_str()), ("Té", "Ann B"));
    assert_eq!(read.pages, ["packed"]);
    let other = b"3 0 obj << /Type /Page /Contents 12 0 R >> endobj 12 0 obj ";
    let updated = [&plain[..], other, &stream("", b"BT /F 10 Tf (updated) Tj ET"), b" endobj"].concat();
    assert_eq!(one(&updated), "updated");
}

#[test]
fn pages_stand_in_their_order_and_a_part_of_them_can_be_read() {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R 4 0 R 2 0 R] /Resources << /Font << /F 5 0 R >> >> >>".to_vec(),
        b"<< /Type /Pages /Kids [6 0 R 7 0 R] >>".to_vec(),
        b"<< /Type /Page /Rotate 90 /Contents [10 0 R 11 0 R] >>".to_vec(),
        HELVETICA.as_bytes().to_vec(),
        b"<< /Type /Page /Contents 8 0 R >>".to_vec(),
        b"<< /Type /Page /Contents 9 0 R >>".to_vec(),
    ];
    for text in ["one", "two", "thr", "ee"] {
        objects.push(stream("", format!("BT /F 10 Tf ({text}) Tj ET").as_bytes()));
    }
    let bytes = file(&objects, "");
    let all = read(&bytes);
    assert_eq!((all.count, all.pages.len()), (3, 3));
    assert_eq!(all.pages[..2], ["one", "two"]);
    let part = |first, pages, bytes_| text(&bytes, &Wanted { first, pages, bytes: bytes_ }, &on).unwrap();
    assert_eq!(part(2, 1, 99).pages, ["two"]);
    assert_eq!((part(9, 1, 99).pages.len(), part(9, 1, 99).count), (0, 3));
    let cut = part(1, 3, 3);
    assert_eq!((cut.pages, cut.whole), (vec!["one".to_owned()], false));
}

#[test]
fn what_is_no_file_or_has_no_pages_is_refused_with_a_reason() {
    for (bytes, word) in [
        (b"".to_vec(), "no PDF"),
        (b"<html>".to_vec(), "no PDF"),
        (b"%PDF-1.4".to_vec(), "no list of pages"),
        (file(&[b"<< /Type /Catalog >>".to_vec()], ""), "no pages"),
        (
            file(&[b"<< /Type /Catalog /Pages 1 0 R >>".to_vec(), b"<< >>".to_vec()], "/Encrypt << /Filter /Own >>"),
            "locked",
        ),
    ] {
        let e = text(&bytes, &Wanted::default(), &on).unwrap_err();
        assert_eq!(e.kind(), Kind::InvalidArguments);
        assert!(e.message().contains(word), "{e}");
    }
    assert_eq!(text(&vec![0; MAX + 1], &Wanted::default(), &on).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn files_that_are_locked_and_open_with_no_password_are_read() {
    let bytes = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    for file in [locked::RC4_40, locked::RC4_128, locked::AES_128, locked::AES_256] {
        let bytes = bytes(file);
        assert!(!bytes.windows(6).any(|w| w == b"Locked"));
        assert_eq!(one(&bytes), "Locked");
        assert_eq!(read(&bytes).title, "A title");
    }
    let e = text(&bytes(locked::PASSWORD), &Wanted::default(), &on).unwrap_err();
    assert_eq!((e.kind(), e.message()), (Kind::InvalidArguments, "the PDF is locked with a password"));
}

#[test]
fn forms_that_hold_themselves_or_multiply_come_to_an_end() {
    let form = |content: &str| {
        vec![stream(
            "/Type /XObject /Subtype /Form /Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >>",
            content.as_bytes(),
        )]
    };
    let once = page_with(b"/X Do", "", HELVETICA, &form("BT /F 10 Tf (inside) Tj ET"));
    assert_eq!(one(&once), "inside");
    let itself = read(&page_with(b"/X Do", "", HELVETICA, &form("BT /F 10 Tf 0 9 Td (x) Tj ET /X Do")));
    assert!(!itself.whole);
    let many = read(&page_with(b"/X Do", "", HELVETICA, &form(&"/X Do ".repeat(50))));
    assert!(!many.whole);
}

#[test]
fn hostile_files_end_in_an_error_or_a_text_and_stop_when_they_are_told_to() {
    let bomb = deflated(&vec![b' '; filter::MAX_UNPACKED + 1]);
    let page_bomb = read(&page_with(&bomb, "/Filter /FlateDecode", HELVETICA, &[]));
    assert!(!page_bomb.whole);
    let huge_map = stream("", b"begincmap 1 beginbfrange <00000000> <ffffffff> <0000> endbfrange endcmap");
    let font = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>";
    assert_eq!(one(&page_with(b"BT /F 10 Tf <0041> Tj ET", "", font, &[huge_map])), "A");
    let wide = format!("/W [{}]", "0 65535 500 ".repeat(60_000));
    let font = format!("<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< {wide} >>] >>");
    assert_eq!(read(&page_with(b"BT /F 10 Tf <0041> Tj ET", "", &font, &[])).unknown, 1);
    let spaces = format!("BT /F 10 Tf ({}{}) Tj ET", "x".repeat(300_000), " ".repeat(300_000));
    assert_eq!(one(&page(&spaces)).len(), 300_000);
    let objects = b"1 0 obj<<>>endobj ".repeat(1000);
    for bytes in [
        [b"%PDF-1.4 ".as_slice(), &objects].concat(),
        [b"%PDF-1.4 ".as_slice(), &b"1 0 obj [".repeat(50_000)].concat(),
        [b"%PDF-1.4 ".as_slice(), &b"1 0 obj (".repeat(50_000)].concat(),
        [b"%PDF-1.4 ".as_slice(), &b"1 0 obj << /Length 9 >> stream ".repeat(20_000)].concat(),
        b"%PDF-1.4 1 0 obj 2 0 R endobj 2 0 obj 1 0 R endobj trailer << /Root 1 0 R >>".to_vec(),
        b"%PDF-1.4 1 0 obj << /Type /ObjStm /N 99 /First 5 /Length 3 >> stream\n1 0\nendstream trailer << /Root 1 0 R >>".to_vec(),
    ] {
        assert!(text(&bytes, &Wanted::default(), &on).is_err());
    }
    let asked = Cell::new(0);
    let few = |_: usize| {
        asked.set(asked.get() + 1);
        if asked.get() > 20 { Err(Error::new(Kind::Timeout, "enough")) } else { Ok(()) }
    };
    let long = page(&"BT /F 10 Tf (x) Tj ET ".repeat(10_000));
    assert_eq!(text(&long, &Wanted::default(), &few).unwrap_err().kind(), Kind::Timeout);
}

#[test]
fn bytes_that_were_changed_anywhere_never_panic() {
    let text_ = deflated(b"BT /F 10 Tf [(Hello) -300 (you)] TJ 0 -12 Td (there) Tj ET");
    let map = stream(
        "",
        b"begincmap 1 beginbfchar <41> <0042> endbfchar 1 beginbfrange <42> <44> [<0061> <0062>] endbfrange",
    );
    let font = "<< /Type /Font /Subtype /TrueType /FirstChar 32 /Widths [300 400 500] /ToUnicode 6 0 R /Encoding << /Differences [65 /a /b] >> >>";
    let good = page_with(&text_, "/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 5 >>", font, &[map]);
    let mut seed = 0x2545_f491_u32;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed as usize % below
    };
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] = b"0123456789<>[]()/ %R-."[random(22)],
                2 => drop(bytes.drain(at..(at + random(9)).min(good.len().min(bytes.len())).max(at))),
                _ => {
                    let copy = bytes[at..bytes.len().min(at + random(40))].to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, copy);
                }
            }
        }
        let _ = text(&bytes, &Wanted::default(), &on);
    }
}
