//! The names by which fonts call their characters, the old one-byte encodings, and the widths of the fonts that every reader
//! has. Facts of the format; nothing is read here.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Names and what they stand for, one behind the other. Letters and digits of one sign stand for themselves.
const NAMES: &str = "\
    Agrave À Aacute Á Acircumflex Â Atilde Ã Adieresis Ä Aring Å Ccedilla Ç Egrave È Eacute É Ecircumflex Ê \
    Edieresis Ë Igrave Ì Iacute Í Icircumflex Î Idieresis Ï Ntilde Ñ Ograve Ò Oacute Ó Ocircumflex Ô Otilde Õ \
    Odieresis Ö Oslash Ø Ugrave Ù Uacute Ú Ucircumflex Û Udieresis Ü Yacute Ý agrave à aacute á acircumflex â \
    atilde ã adieresis ä aring å ccedilla ç egrave è eacute é ecircumflex ê edieresis ë igrave ì iacute í \
    icircumflex î idieresis ï ntilde ñ ograve ò oacute ó ocircumflex ô otilde õ odieresis ö oslash ø ugrave ù \
    uacute ú ucircumflex û udieresis ü yacute ý ydieresis ÿ Amacron Ā amacron ā Abreve Ă abreve ă Aogonek Ą \
    aogonek ą Cacute Ć cacute ć Ccircumflex Ĉ ccircumflex ĉ Cdotaccent Ċ cdotaccent ċ Ccaron Č ccaron č Dcaron Ď \
    dcaron ď Dslash Đ dslash đ Emacron Ē emacron ē Ebreve Ĕ ebreve ĕ Edotaccent Ė edotaccent ė Eogonek Ę \
    eogonek ę Ecaron Ě ecaron ě Gcircumflex Ĝ gcircumflex ĝ Gbreve Ğ gbreve ğ Gdotaccent Ġ gdotaccent ġ \
    Gcedilla Ģ gcedilla ģ Hcircumflex Ĥ hcircumflex ĥ Hslash Ħ hslash ħ Itilde Ĩ itilde ĩ Imacron Ī imacron ī \
    Ibreve Ĭ ibreve ĭ Iogonek Į iogonek į Idotaccent İ Jcircumflex Ĵ jcircumflex ĵ Kcedilla Ķ kcedilla ķ \
    Lacute Ĺ lacute ĺ Lcedilla Ļ lcedilla ļ Lcaron Ľ lcaron ľ Lslash Ł lslash ł Nacute Ń nacute ń Ncedilla Ņ \
    ncedilla ņ Ncaron Ň ncaron ň Omacron Ō omacron ō Obreve Ŏ obreve ŏ Ohungarumlaut Ő ohungarumlaut ő Racute Ŕ \
    racute ŕ Rcedilla Ŗ rcedilla ŗ Rcaron Ř rcaron ř Sacute Ś sacute ś Scircumflex Ŝ scircumflex ŝ Scedilla Ş \
    scedilla ş Scaron Š scaron š Tcedilla Ţ tcedilla ţ Tcaron Ť tcaron ť Tslash Ŧ tslash ŧ Utilde Ũ utilde ũ \
    Umacron Ū umacron ū Ubreve Ŭ ubreve ŭ Uring Ů uring ů Uhungarumlaut Ű uhungarumlaut ű Uogonek Ų uogonek ų \
    Wcircumflex Ŵ wcircumflex ŵ Ycircumflex Ŷ ycircumflex ŷ Ydieresis Ÿ Zacute Ź zacute ź Zdotaccent Ż \
    zdotaccent ż Zcaron Ž zcaron ž Wgrave Ẁ wgrave ẁ Wacute Ẃ wacute ẃ Wdieresis Ẅ wdieresis ẅ Ygrave Ỳ ygrave ỳ \
    AE Æ ae æ OE Œ oe œ Eth Ð eth ð Thorn Þ thorn þ germandbls ß Dcroat Đ dcroat đ Hbar Ħ hbar ħ dotlessi ı IJ Ĳ \
    ij ĳ Ldot Ŀ ldot ŀ Eng Ŋ eng ŋ kgreenlandic ĸ napostrophe ŉ longs ſ Tbar Ŧ tbar ŧ Gcommaaccent Ģ \
    gcommaaccent ģ Kcommaaccent Ķ kcommaaccent ķ Lcommaaccent Ļ lcommaaccent ļ Ncommaaccent Ņ ncommaaccent ņ \
    Rcommaaccent Ŗ rcommaaccent ŗ Scommaaccent Ș scommaaccent ș Tcommaaccent Ț tcommaaccent ț exclam ! \
    quotedbl \" numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk * \
    plus + comma , hyphen - period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 \
    nine 9 colon : semicolon ; less < equal = greater > question ? at @ bracketleft [ backslash \\ \
    bracketright ] asciicircum ^ grave ` braceleft { bar | braceright } asciitilde ~ exclamdown ¡ cent ¢ \
    sterling £ currency ¤ yen ¥ brokenbar ¦ section § dieresis ¨ copyright © ordfeminine ª guillemotleft « \
    logicalnot ¬ registered ® macron ¯ degree ° plusminus ± twosuperior ² threesuperior ³ acute ´ mu µ \
    paragraph ¶ periodcentered · middot · cedilla ¸ onesuperior ¹ ordmasculine º guillemotright » onequarter ¼ \
    onehalf ½ threequarters ¾ questiondown ¿ multiply × divide ÷ circumflex ˆ caron ˇ breve ˘ dotaccent ˙ ring ˚ \
    ogonek ˛ tilde ˜ hungarumlaut ˝ endash – emdash — quoteleft ‘ quoteright ’ quotesinglbase ‚ quotedblleft “ \
    quotedblright ” quotedblbase „ dagger † daggerdbl ‡ bullet • ellipsis … perthousand ‰ minute ′ second ″ \
    guilsinglleft ‹ guilsinglright › fraction ⁄ Euro € florin ƒ trademark ™ estimated ℮ numero № ff ff fi fi \
    fl fl ffi ffi ffl ffl sfthyphen - softhyphen - hyphentwo - figuredash ‒ afii00208 ― horizontalbar ― Alpha Α \
    Beta Β Gamma Γ Delta Δ Epsilon Ε Zeta Ζ Eta Η Theta Θ Iota Ι Kappa Κ Lambda Λ Mu Μ Nu Ν Xi Ξ Omicron Ο Pi Π \
    Rho Ρ Sigma Σ Tau Τ Upsilon Υ Phi Φ Chi Χ Psi Ψ Omega Ω alpha α beta β gamma γ delta δ epsilon ε epsilon1 ϵ \
    zeta ζ eta η theta θ theta1 ϑ iota ι kappa κ lambda λ nu ν xi ξ omicron ο pi π rho ρ sigma σ sigma1 ς tau τ \
    upsilon υ phi φ phi1 ϕ chi χ psi ψ omega ω omega1 ϖ minus − lessequal ≤ greaterequal ≥ notequal ≠ \
    approxequal ≈ equivalence ≡ proportional ∝ infinity ∞ partialdiff ∂ gradient ∇ summation ∑ product ∏ \
    integral ∫ radical √ element ∈ notelement ∉ union ∪ intersection ∩ propersubset ⊂ propersuperset ⊃ \
    reflexsubset ⊆ reflexsuperset ⊇ emptyset ∅ logicaland ∧ logicalor ∨ similar ∼ congruent ≅ angle ∠ \
    perpendicular ⊥ therefore ∴ universal ∀ existential ∃ asteriskmath ∗ dotmath ⋅ circleplus ⊕ circlemultiply ⊗ \
    arrowleft ← arrowup ↑ arrowright → arrowdown ↓ arrowboth ↔ arrowdblleft ⇐ arrowdblright ⇒ arrowdblboth ⇔ \
    lozenge ◊ aleph ℵ Ifraktur ℑ Rfraktur ℜ weierstrass ℘ negationslash ̸ angbracketleft ⟨ angbracketright ⟩ \
    visiblespace ␣ filledbox ■ square □ circle ○ checkmark ✓ heart ♥ club ♣ diamond ♦ spade ♠ musicalnote ♪ \
    lscript ℓ dotlessj ȷ";

/// What the upper half of the standard encoding holds, by code.
const STANDARD: &str = "\
    ¡ 161 ¢ 162 £ 163 ⁄ 164 ¥ 165 ƒ 166 § 167 ¤ 168 ' 169 “ 170 « 171 ‹ 172 › 173 fi 174 fl 175 – 177 † 178 ‡ 179 · 180 ¶ 182 \
    • 183 ‚ 184 „ 185 ” 186 » 187 … 188 ‰ 189 ¿ 191 ` 193 ´ 194 ˆ 195 ˜ 196 ¯ 197 ˘ 198 ˙ 199 ¨ 200 ˚ 202 ¸ 203 ˝ 205 ˛ 206 \
    ˇ 207 — 208 Æ 225 ª 227 Ł 232 Ø 233 Œ 234 º 235 æ 241 ı 245 ł 248 ø 249 œ 250 ß 251";

/// Widths of the signs from the space to the tilde.
const SANS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 222, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 222, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];
const SANS_BOLD: [u16; 95] = [
    278, 333, 474, 556, 556, 889, 722, 278, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 278, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
];
const SERIF: [u16; 95] = [
    250, 333, 408, 500, 500, 833, 778, 333, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500, 500,
    500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889,
    722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500,
    444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480,
    200, 480, 541,
];
const SERIF_BOLD: [u16; 95] = [
    250, 333, 555, 500, 500, 1000, 833, 333, 333, 333, 500, 570, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500, 500,
    500, 500, 500, 333, 333, 570, 570, 570, 500, 930, 722, 667, 722, 722, 667, 611, 778, 778, 389, 500, 778, 667, 944,
    722, 778, 611, 778, 722, 556, 667, 722, 722, 1000, 722, 722, 667, 333, 278, 333, 581, 500, 333, 500, 556, 444, 556,
    444, 333, 500, 556, 278, 333, 556, 278, 833, 556, 500, 556, 556, 444, 389, 333, 556, 500, 722, 500, 500, 444, 394,
    220, 394, 520,
];

/// What a name stands for; `None` for one that says nothing, such as `g12`.
pub(super) fn of_name(name: &[u8]) -> Option<String> {
    static TABLE: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    let name = std::str::from_utf8(name).ok()?;
    // `a.alt` is drawn otherwise and means the same.
    let name = match name.split_once('.') {
        Some(("", _)) | None => name,
        Some((stem, _)) => stem,
    };
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return letter.is_ascii_alphabetic().then(|| letter.to_string());
    }
    let table = TABLE.get_or_init(|| {
        let words: Vec<&str> = NAMES.split_whitespace().collect();
        words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    });
    if let Some(text) = table.get(name) {
        return Some((*text).to_owned());
    }
    let hex = |digits: &str| {
        let all = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_lowercase());
        all.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32)
    };
    match name {
        "space" | "nbspace" => return Some(" ".to_owned()),
        _ => {}
    }
    if let Some(letter) = name.strip_prefix("uni").filter(|digits| digits.len() == 4).and_then(hex) {
        return Some(letter.to_string());
    }
    if let Some(letter) = name.strip_prefix('u').filter(|digits| digits.len() <= 6).and_then(hex) {
        return Some(letter.to_string());
    }
    // `f_f_i` is a ligature.
    let parts: Option<Vec<String>> =
        name.contains('_').then(|| name.split('_').take(8).map(|part| of_name(part.as_bytes())).collect()).flatten();
    parts.map(|parts| parts.concat())
}

/// What a code means in a base encoding.
pub(super) fn of_code(encoding: &[u8], code: u8) -> Option<String> {
    let decoded = |table: &'static encoding_rs::Encoding| {
        let bytes = [code];
        let text = table.decode_without_bom_handling(&bytes).0;
        text.chars().next().filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER).map(String::from)
    };
    match (encoding, code) {
        (b"MacRomanEncoding", _) => decoded(encoding_rs::MACINTOSH),
        (b"WinAnsiEncoding", 0x7f | 0x81 | 0x8d | 0x8f | 0x90 | 0x9d) => Some("•".to_owned()),
        (b"WinAnsiEncoding", _) => decoded(encoding_rs::WINDOWS_1252),
        (_, b'\'') => Some("’".to_owned()),
        (_, b'`') => Some("‘".to_owned()),
        (_, b' '..=b'~') => Some(char::from(code).to_string()),
        _ => {
            let words: Vec<&str> = STANDARD.split_whitespace().collect();
            let found = words.chunks_exact(2).find(|pair| pair[1].parse() == Ok(code));
            found.map(|pair| pair[0].to_owned())
        }
    }
}

/// The width of a code in a font that brings no widths, in thousandths of its size.
pub(super) fn width(font: &[u8], code: u8) -> f64 {
    let has = |word: &[u8]| font.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word));
    if has(b"Courier") || has(b"Mono") {
        return 600.0;
    }
    let table = match (has(b"Times") || has(b"Serif") || has(b"Roman"), has(b"Bold")) {
        (true, false) => &SERIF,
        (true, true) => &SERIF_BOLD,
        (false, false) => &SANS,
        (false, true) => &SANS_BOLD,
    };
    f64::from(usize::from(code).checked_sub(32).and_then(|at| table.get(at)).copied().unwrap_or(556))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_what_they_say() {
        for (name, text) in [
            ("a", "a"),
            ("eacute", "é"),
            ("Lslash", "Ł"),
            ("germandbls", "ß"),
            ("fi", "fi"),
            ("ffl", "ffl"),
            ("quotedblleft", "“"),
            ("seven", "7"),
            ("backslash", "\\"),
            ("quotedbl", "\""),
            ("space", " "),
            ("uni20AC", "€"),
            ("u1F600", "😀"),
            ("f_f_i", "ffi"),
            ("a.alt", "a"),
            ("one.oldstyle", "1"),
        ] {
            assert_eq!(of_name(name.as_bytes()).as_deref(), Some(text), "{name}");
        }
        for name in ["g12", ".notdef", "cid00042", "", "1", "uni20a", "uniD800"] {
            assert_eq!(of_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn codes_mean_what_their_encoding_says() {
        for (encoding, code, text) in [
            ("WinAnsiEncoding", 0xe9, Some("é")),
            ("WinAnsiEncoding", 0x80, Some("€")),
            ("WinAnsiEncoding", b'\'', Some("'")),
            ("MacRomanEncoding", 0x8e, Some("é")),
            ("StandardEncoding", b'\'', Some("’")),
            ("StandardEncoding", 174, Some("fi")),
            ("StandardEncoding", 251, Some("ß")),
            ("StandardEncoding", 255, None),
            ("WinAnsiEncoding", 3, None),
        ] {
            assert_eq!(of_code(encoding.as_bytes(), code).as_deref(), text, "{encoding} {code}");
        }
        assert!(width(b"Courier-Bold", b'i') > width(b"ABCDEF+Helvetica", b'i'));
        assert!(width(b"Times-Bold", b'm') > width(b"Times-Roman", b'm'));
    }
}
