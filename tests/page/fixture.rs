//! A daemon inside the test, on a temporary folder, and a browser that remembers cookies.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use seriatim::daemon::Daemon;
use seriatim::daemon::DaemonOptions;

use crate::fixture::http;
use crate::fixture::http::Answer;

/// How long anything may take before a test gives up; nothing waits for it to pass.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A daemon that runs, and the folder it runs on.
pub(crate) struct Fixture {
    _daemon: Daemon,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

/// A browser as far as cookies go.
pub(crate) struct Browser {
    address: SocketAddr,
    cookies: BTreeMap<String, String>,
    /// Headers that every request has.
    pub(crate) headers: Vec<(String, String)>,
}

impl Fixture {
    /// A daemon without keys and with these definition files.
    pub(crate) async fn open(definitions: &[(&str, &str)]) -> Fixture {
        Fixture::open_with(definitions, |_, _| {}).await
    }

    pub(crate) async fn open_with(
        definitions: &[(&str, &str)],
        change: impl FnOnce(&mut DaemonOptions, &Path),
    ) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let workflows = folder.path().join("workflows");
        std::fs::create_dir(&workflows).expect("a folder for definitions");
        for (name, text) in definitions {
            std::fs::write(workflows.join(name), text).expect("the folder can be written");
        }
        let mut options = DaemonOptions::new(folder.path().join("data"), workflows);
        options.http = SocketAddr::from(([127, 0, 0, 1], 0));
        options.head_room_bytes = 0;
        options.history = Some(Duration::from_secs(3_600));
        change(&mut options, folder.path());
        let daemon = Daemon::start(options).await.expect("the daemon starts");
        let address = daemon.address();
        Fixture { _daemon: daemon, address, _folder: folder }
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser { address: self.address, cookies: BTreeMap::new(), headers: Vec::new() }
    }

    /// Asks the API, which has to do it.
    pub(crate) async fn api(&self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.api_as(method, path, body, &[]).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
    }

    pub(crate) async fn api_as(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let json = [("content-type".to_owned(), "application/json".to_owned())];
        let given = headers.iter().any(|(name, _)| name == "content-type");
        let headers: Vec<_> = if given { headers } else { json.into_iter().chain(headers).collect() };
        ask(self.address, method, &format!("/v1{path}"), &headers, body.as_bytes()).await
    }
}

impl Answer {
    /// The value of a hidden field of the first form that has it.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let (_, rest) = self
            .text()
            .split_once(&format!("name=\"{name}\" value=\""))
            .map(|(before, rest)| (before.to_owned(), rest.to_owned()))?;
        rest.split_once('"').map(|(value, _)| value.replace("&quot;", "\"").replace("&amp;", "&"))
    }
}

impl Browser {
    /// Looks at a place of the page.
    pub(crate) async fn get(&mut self, place: &str) -> Answer {
        self.ask("GET", place, "").await
    }

    /// Looks at a screen, which has to be there.
    pub(crate) async fn screen(&mut self, place: &str) -> String {
        let answer = self.get(place).await;
        assert_eq!(answer.status, 200, "{place}: {}", answer.text());
        answer.text()
    }

    /// Sends a form, with lines that end as browsers end them.
    pub(crate) async fn post(&mut self, place: &str, fields: &[(&str, &str)]) -> Answer {
        let sent = |value: &str| encoded(&value.replace("\r\n", "\n").replace('\n', "\r\n"));
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", sent(value))).collect();
        self.ask("POST", place, &pairs.join("&")).await
    }

    async fn ask(&mut self, method: &str, place: &str, body: &str) -> Answer {
        let mut headers = self.headers.clone();
        if method == "POST" {
            headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        }
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        let answer = ask(self.address, method, &format!("/ui/{place}"), &headers, body.as_bytes()).await;
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) =
                line.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            match line.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// The token of the forms, as a form has it.
    pub(crate) async fn token(&mut self, place: &str) -> String {
        self.get(place).await.field("form_token").expect("the screen has a form")
    }

    /// Reviews something that can be done, and does it.
    pub(crate) async fn act(&mut self, plan: &str, reason: Option<&str>) -> Answer {
        let review = self.screen(&format!("review?{plan}")).await;
        let mut fields = hidden(&review);
        if let Some(reason) = reason {
            fields.push(("reason".to_owned(), reason.to_owned()));
        }
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post("act", &fields).await
    }
}

/// All hidden fields of the form that leads to `act`.
pub(crate) fn hidden(html: &str) -> Vec<(String, String)> {
    let form = html.split("action=\"act\"").nth(1).unwrap_or_else(|| panic!("nothing can be done: {html}"));
    let form = form.split("</form>").next().expect("a form ends");
    let inputs = form.split("<input type=\"hidden\" name=\"").skip(1).map(|input| {
        let (name, rest) = input.split_once("\" value=\"").expect("a hidden field has a value");
        let value = rest.split('"').next().expect("a value ends");
        let plain =
            value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        (name.to_owned(), plain)
    });
    inputs.collect()
}

/// Percent-encodes everything but letters and digits.
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Asks beside the test, whose thread may be the one that answers.
async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Answer {
    let (method, path) = (method.to_owned(), path.to_owned());
    let (headers, body) = (headers.to_vec(), body.to_vec());
    let asked = tokio::task::spawn_blocking(move || {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        http::ask(&address.to_string(), TIMEOUT, (&method, &path), &headers, &body)
    });
    asked.await.expect("nobody panics").expect("an answer comes")
}
