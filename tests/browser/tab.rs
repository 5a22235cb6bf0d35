//! A tab of a real browser, driven over its own debugging pipe: it clicks and types where a person would, takes pictures, and
//! measures what a page is like to look at. It knows no page.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a page may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is wrong with the page that is shown, each in one line: things that a reader of a small screen, of a dark one, with a keyboard
/// or with a screen reader would meet.
const AUDIT: &str = r##"(() => {
  const wrong = [];
  const name = element => element.tagName.toLowerCase() + (element.className ? '.' + element.className : '') + ' "' + element.textContent.trim().slice(0, 30) + '"';
  const shown = element => { const box = element.getBoundingClientRect(); return box.width > 1 && box.height > 1; };
  if (document.documentElement.scrollWidth > innerWidth + 1) wrong.push('wider than the screen: ' + document.documentElement.scrollWidth);
  if (!document.documentElement.lang) wrong.push('no language');
  if (!document.title.trim()) wrong.push('no title');
  if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
  let level = 0;
  for (const heading of document.querySelectorAll('h1,h2,h3,h4')) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) wrong.push('a heading is skipped before ' + name(heading));
    level = own;
  }
  for (const field of document.querySelectorAll('input:not([type=hidden])'))
    if (!field.labels.length && !field.ariaLabel) wrong.push('no label: ' + name(field));
  const links = new Map();
  for (const link of document.querySelectorAll('a[href],button')) {
    const words = link.ariaLabel || link.textContent.trim();
    if (!words) wrong.push('no words: ' + link.outerHTML.slice(0, 60));
    if (link.href && links.has(words) && links.get(words) !== link.href) wrong.push('two links, one name: ' + words);
    if (link.href) links.set(words, link.href);
    if (link.getBoundingClientRect().height < 17) wrong.push('hard to hit: ' + name(link));
  }
  const light = color => {
    const [r, g, b] = color.map(part => { const c = part / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
  };
  for (const element of document.querySelectorAll('body *')) {
    const speaks = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!speaks || !shown(element)) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(parse(style.color).slice(0, 3)), light(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 ? 3 : 4.5)) wrong.push('contrast ' + ratio.toFixed(1) + ': ' + name(element));
    if (size < 12) wrong.push('small print of ' + size + ': ' + name(element));
  }
  return [...new Set(wrong)];
})()"##;

/// Light or dark, as the reader's system asks.
#[derive(Clone, Copy, Debug)]
pub enum Scheme {
    Light,
    Dark,
}

/// One tab.
pub struct Tab {
    browser: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    _profile: TempDir,
}

impl Drop for Tab {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

impl Tab {
    pub fn open() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        // The pipe's ends must be descriptors 3 and 4, which a shell can arrange.
        let mut browser = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .args(super::QUIET)
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromium is on the path");
        let to = browser.stdin.take().expect("a pipe");
        let from = BufReader::new(browser.stdout.take().expect("a pipe"));
        let mut tab = Self { browser, to, from, session: None, calls: 0, _profile: profile };
        let target = tab.must("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = tab.must("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        tab.session = attached["sessionId"].as_str().map(str::to_owned);
        tab.must("Page.enable", &json!({}));
        tab
    }

    /// As a screen of this width, in this scheme.
    pub fn dress(&mut self, width: u32, scheme: Scheme) {
        let scheme = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        self.must(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false }),
        );
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.must("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    pub fn go(&mut self, url: &str) {
        self.must("Page.navigate", &json!({ "url": url }));
        self.wait("the page", "document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Waits until these words stand on the page.
    pub fn reads(&mut self, words: &str) {
        let said = serde_json::to_string(words).expect("text");
        self.wait(words, &format!("document.readyState === 'complete' && document.body.innerText.includes({said})"));
    }

    /// Clicks in the middle of an element, which must be in sight.
    pub fn click(&mut self, selector: &str) {
        let selector = serde_json::to_string(selector).expect("text");
        let at = self.run(&format!(
            "(() => {{ const element = document.querySelector({selector}); element.scrollIntoView({{ block: 'center' }}); \
             const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        let at = at.unwrap_or_else(|| panic!("no {selector} on the page: {}", self.text()));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 });
            self.must("Input.dispatchMouseEvent", &event);
        }
    }

    /// Types where the cursor is.
    pub fn write(&mut self, text: &str) {
        self.must("Input.insertText", &json!({ "text": text }));
    }

    /// Presses a key: `Tab`, `Enter`.
    pub fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if key == "Enter" && kind == "keyDown" {
                event["text"] = json!("\r");
            }
            self.must("Input.dispatchKeyEvent", &event);
        }
    }

    pub fn text(&mut self) -> String {
        let text = self.run("document.body.innerText").unwrap_or_default();
        text.as_str().unwrap_or_default().to_owned()
    }

    /// In both schemes, on a wide and on a small screen: a picture of each, and what is wrong with any.
    pub fn look(&mut self, name: &str) {
        let mut wrong = Vec::new();
        for (width, screen) in [(1200, "wide"), (360, "small")] {
            for scheme in [Scheme::Light, Scheme::Dark] {
                self.dress(width, scheme);
                // A page that looks again by itself may be on its way.
                let found = (0..20).find_map(|_| {
                    self.wait("the page", "document.readyState === 'complete'");
                    self.run(AUDIT)
                });
                let found = found.expect("the audit runs");
                let shown = format!("{name}-{screen}-{}", format!("{scheme:?}").to_lowercase());
                for one in found.as_array().into_iter().flatten() {
                    wrong.push(format!("{shown}: {}", one.as_str().unwrap_or_default()));
                }
                self.picture(&shown);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn picture(&mut self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        std::fs::create_dir_all(&folder).expect("a folder");
        let taken = self.must("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        let bytes = base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().expect("a picture"));
        std::fs::write(folder.join(format!("{name}.png")), bytes.expect("base64")).expect("a file");
    }

    fn wait(&mut self, what: &str, script: &str) {
        let until = Instant::now() + PATIENCE;
        while self.run(script) != Some(Value::Bool(true)) {
            assert!(Instant::now() < until, "{what} did not come: {}", self.text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The value of an expression; `None` when it fails, as it does while the page changes.
    fn run(&mut self, script: &str) -> Option<Value> {
        let asked = json!({ "expression": script, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &asked).ok()?;
        answer.get("exceptionDetails").is_none().then(|| answer["result"]["value"].clone())
    }

    fn must(&mut self, method: &str, parameters: &Value) -> Value {
        self.call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            let read = self.from.read_until(0, &mut bytes).expect("the browser speaks");
            assert!(read > 0, "the browser is gone");
            let answer: Value = serde_json::from_slice(&bytes[..read - 1]).expect("JSON");
            // Between the answers come events, which nobody here waits for.
            if answer["id"] == self.calls {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }
}
