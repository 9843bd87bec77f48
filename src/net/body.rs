//! From what a request sends to its bytes: JSON, forms, forms with files. Pure.

use super::request::{Body, File};
use crate::base::error::{Error, Result};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

/// The bytes to send; sets the content type that goes with them unless the request has its own.
pub(super) fn encode(body: Body, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>> {
    let (bytes, content_type) = match body {
        Body::Empty => return Ok(None),
        Body::Json(value) => {
            let bytes = serde_json::to_vec(&value).map_err(|e| Error::invalid(format!("the json body: {e}")))?;
            (bytes, "application/json")
        }
        Body::Form(pairs) => {
            let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            (text.into_bytes(), "application/x-www-form-urlencoded")
        }
        Body::Text(text) => (text.into_bytes(), "text/plain; charset=utf-8"),
        Body::Bytes(bytes) => (bytes, "application/octet-stream"),
        Body::Multipart(fields, files) => {
            if headers.contains_key(CONTENT_TYPE) {
                return Err(Error::invalid("the content type of a form with files is set by the host")
                    .hint("leave the header `content-type` out"));
            }
            let boundary = boundary();
            let bytes = multipart(&boundary, &fields, &files)?;
            let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"))
                .map_err(|_| Error::internal("a boundary is no header"))?;
            headers.insert(CONTENT_TYPE, content_type);
            return Ok(Some(bytes));
        }
    };
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
    Ok(Some(bytes))
}

/// A line that no content holds: 128 random bits.
fn boundary() -> String {
    format!("lapidary-{}", uuid::Uuid::new_v4().simple())
}

fn multipart(boundary: &str, fields: &[(String, String)], files: &[File]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (name, value) in fields {
        let name = quoted(name);
        out.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").into_bytes());
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for file in files {
        let media_type = file.media_type.as_deref().unwrap_or("application/octet-stream");
        if HeaderValue::from_str(media_type).is_err() {
            return Err(Error::invalid(format!("the content type of the file `{}` is none", file.field)));
        }
        let (field, name) = (quoted(&file.field), quoted(&file.name));
        out.extend(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
                 Content-Type: {media_type}\r\n\r\n"
            )
            .into_bytes(),
        );
        out.extend_from_slice(&file.data);
        out.extend_from_slice(b"\r\n");
    }
    out.extend(format!("--{boundary}--\r\n").into_bytes());
    Ok(out)
}

/// A name between quotation marks, as browsers write one: what would end it or its line is percent-encoded.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_form_with_files_has_a_part_for_each_and_no_name_breaks_out() {
        let fields =
            vec![("title".to_owned(), "Tea\r\n--x".to_owned()), ("a\"b\r\nX-Evil: 1".to_owned(), String::new())];
        let file = |name: &str, media_type: Option<&str>| File {
            field: "up".into(),
            name: name.into(),
            media_type: media_type.map(Into::into),
            data: vec![0, 255, 13, 10],
        };
        let files = vec![file("a\"\n.txt", Some("text/plain")), file("b", None)];
        let bytes = multipart("B", &fields, &files).unwrap();
        let expected = b"--B\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nTea\r\n--x\r\n\
            --B\r\nContent-Disposition: form-data; name=\"a%22b%0D%0AX-Evil: 1\"\r\n\r\n\r\n\
            --B\r\nContent-Disposition: form-data; name=\"up\"; filename=\"a%22%0A.txt\"\r\nContent-Type: text/plain\r\n\r\n\
            \x00\xff\r\n\r\n\
            --B\r\nContent-Disposition: form-data; name=\"up\"; filename=\"b\"\r\nContent-Type: application/octet-stream\r\n\r\n\
            \x00\xff\r\n\r\n--B--\r\n";
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(expected));
        assert!(multipart("B", &[], &[file("c", Some("text/plain\r\nX-Evil: 1"))]).is_err());
        assert_ne!(boundary(), boundary());
    }

    #[test]
    fn a_form_with_files_names_its_boundary_and_takes_no_other_content_type() {
        let body = || Body::Multipart(vec![("a".into(), "1".into())], Vec::new());
        let mut headers = HeaderMap::new();
        let bytes = encode(body(), &mut headers).unwrap().unwrap();
        let content_type = headers[CONTENT_TYPE].to_str().unwrap().to_owned();
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert!(bytes.starts_with(format!("--{boundary}\r\n").as_bytes()));
        assert!(encode(body(), &mut headers).is_err());
    }
}
