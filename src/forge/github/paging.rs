//! Lists in pages, followed by `Link` until there is no next one; what `per_page` promises is never trusted.
//! A link never takes the token to another host.

use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::GitHub;
use super::request::{Ask, Whose};
use crate::ports::forge::ForgeError;

/// More pages than any list has; ends a list whose links run in a circle.
const MOST_PAGES: usize = 2_000;

/// How the elements stand in a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A bare array.
    Array,
    /// An array under this key.
    Under(&'static str),
}

impl GitHub {
    /// All elements of a list.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        whose: Whose<'_>,
        path: &str,
        shape: Shape,
    ) -> Result<Vec<T>, ForgeError> {
        let mut found = Vec::new();
        let mut next = Some(with_page_size(path));
        for _ in 0..MOST_PAGES {
            let Some(path) = next.take() else { return Ok(found) };
            let answer = self.ask(whose, &Ask::get(path)).await?;
            found.extend(elements::<T>(answer.read()?, shape)?);
            next = next_link(&answer.headers).map(|link| self.access.below_root(&link)).transpose()?;
        }
        Err(ForgeError::Unreadable(format!("{path}: the list does not end")))
    }
}

fn with_page_size(path: &str) -> String {
    format!("{path}{}per_page=100", if path.contains('?') { '&' } else { '?' })
}

fn elements<T: DeserializeOwned>(page: Value, shape: Shape) -> Result<Vec<T>, ForgeError> {
    let list = match (shape, page) {
        (Shape::Under(key), Value::Object(mut object)) => object.remove(key).unwrap_or(Value::Null),
        (_, other) => other,
    };
    // The reader's own words could quote what it read.
    serde_json::from_value(list)
        .map_err(|_| ForgeError::Unreadable("a list has another shape than GitHub's".to_owned()))
}

/// The target of `rel="next"`.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(http::header::LINK)?.to_str().ok()?;
    link.split('<').skip(1).find_map(|part| {
        let (target, parameters) = part.split_once('>')?;
        parameters.contains("rel=\"next\"").then(|| target.to_owned())
    })
}

/// Path and query of an absolute link, without the prefix that the API's root adds by itself.
///
/// The link's host is dropped on purpose: behind a proxy it differs from ours, and elsewhere our token must not go.
pub(super) fn below(root: &Url, link: &str) -> Result<String, ForgeError> {
    let target = root
        .join(link)
        .map_err(|error| ForgeError::Unreadable(format!("the next page's link cannot be read: {error}")))?;
    let prefix = root.path().trim_end_matches('/');
    let path = target.path().strip_prefix(prefix).filter(|rest| rest.starts_with('/')).unwrap_or(target.path());
    Ok(target.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_is_found_among_others() {
        let mut headers = HeaderMap::new();
        assert_eq!(next_link(&headers), None);
        let link = r#"<https://h/a?page=1>; rel="prev", <https://h/a?q=x,y&page=3>; rel="next", <https://h/a?page=9>; rel="last""#;
        headers.insert(http::header::LINK, link.parse().unwrap());
        assert_eq!(next_link(&headers).as_deref(), Some("https://h/a?q=x,y&page=3"));
        headers.insert(http::header::LINK, r#"<https://h/a?page=1>; rel="first""#.parse().unwrap());
        assert_eq!(next_link(&headers), None);
    }

    #[test]
    fn a_link_keeps_its_path_and_loses_its_host() {
        for (root, link, path) in [
            ("http://127.0.0.1:9", "http://127.0.0.1:9/repos/o/r?page=2", "/repos/o/r?page=2"),
            ("https://h/api/v3", "https://h/api/v3/repos/o/r?page=2", "/repos/o/r?page=2"),
            ("https://h/api/v3", "http://elsewhere/api/v3/repositories/7?page=2", "/repositories/7?page=2"),
            ("https://h/api/v3", "/api/v3/user/repos", "/user/repos"),
        ] {
            assert_eq!(below(&Url::parse(root).unwrap(), link).unwrap(), path);
        }
    }
}
