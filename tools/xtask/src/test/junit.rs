//! Results as JUnit XML, as CI systems read them.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::run::Ended;

/// A test in the output of a binary.
#[derive(Debug, PartialEq, Eq)]
struct Case<'a> {
    name: &'a str,
    /// `ok`, `ignored` or `FAILED`.
    result: &'a str,
}

/// The tests that the output of the test harness names.
fn cases(text: &str) -> Vec<Case<'_>> {
    text.lines()
        .filter_map(|line| {
            let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
            let result = result.split([',', ' ']).next().unwrap_or(result);
            ["ok", "ignored", "FAILED"]
                .contains(&result)
                .then_some(Case { name, result })
        })
        .collect()
}

/// What a failed test printed.
fn printed<'a>(text: &'a str, name: &str) -> &'a str {
    let head = format!("---- {name} stdout ----");
    let Some((_, rest)) = text.split_once(&head) else {
        return "";
    };
    let end = rest.find("\n---- ").or_else(|| rest.find("\nfailures:"));
    rest[..end.unwrap_or(rest.len())].trim()
}

/// Text as XML has it; characters that XML 1.0 cannot hold are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(c),
            c if (c as u32) < 0x20 => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// A suite: the tests of one binary. One that failed without naming a test gets a case of its own.
fn suite(ended: &Ended) -> String {
    let (name, text) = (escape(&ended.name), &ended.text);
    let cases = cases(text);
    let count = |result: &str| cases.iter().filter(|case| case.result == result).count();
    let crashed = !ended.success && count("FAILED") == 0;
    let mut xml = format!(
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\">\n",
        cases.len() + usize::from(crashed),
        count("FAILED") + usize::from(crashed),
        count("ignored"),
        ended.time.as_secs_f64()
    );
    let failure = |case: &str, text: &str| {
        format!(
            "    <testcase classname=\"{name}\" name=\"{}\"><failure>{}</failure></testcase>\n",
            escape(case),
            escape(text)
        )
    };
    for case in &cases {
        let line = match case.result {
            "FAILED" => failure(case.name, printed(text, case.name)),
            result => {
                let inner = if result == "ignored" {
                    "<skipped/>"
                } else {
                    ""
                };
                let case = escape(case.name);
                format!("    <testcase classname=\"{name}\" name=\"{case}\">{inner}</testcase>\n")
            }
        };
        xml += &line;
    }
    if crashed {
        xml += &failure("the binary", text);
    }
    let _ = writeln!(xml, "  </testsuite>");
    xml
}

/// Writes the results of all binaries.
///
/// # Errors
/// Those of the file.
pub(super) fn write(to: &mut impl Write, ended: &[Ended]) -> io::Result<()> {
    writeln!(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>"
    )?;
    for ended in ended {
        to.write_all(suite(ended).as_bytes())?;
    }
    writeln!(to, "</testsuites>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TEXT: &str = "running 3 tests\ntest a::good ... ok\ntest slow ... ignored, takes long\n\
        test b::bad ... FAILED\n\nfailures:\n\n---- b::bad stdout ----\n1 < 2 & \"x\"\n\nfailures:\n    b::bad\n";

    fn ended(success: bool, text: &str) -> Ended {
        Ended {
            name: "it".into(),
            success,
            text: text.into(),
            time: Duration::from_millis(1500),
        }
    }

    #[test]
    fn each_test_is_a_case_with_its_result_and_output() {
        let xml = suite(&ended(false, TEXT));
        for part in [
            "tests=\"3\" failures=\"1\" skipped=\"1\" time=\"1.500\"",
            "name=\"a::good\"></testcase>",
            "name=\"slow\"><skipped/></testcase>",
            "name=\"b::bad\"><failure>1 &lt; 2 &amp; &quot;x&quot;</failure>",
        ] {
            assert!(xml.contains(part), "{part} in {xml}");
        }
    }

    #[test]
    fn a_binary_that_dies_is_a_failure() {
        let xml = suite(&ended(false, "running 1 test\nSegmentation fault"));
        assert!(xml.contains("tests=\"1\" failures=\"1\""), "{xml}");
        assert!(xml.contains("<failure>running 1 test\nSegmentation fault"));
    }

    #[test]
    fn the_whole_is_one_document() {
        let mut out = Vec::new();
        write(&mut out, &[ended(true, ""), ended(true, "test a ... ok\n")]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("<?xml") && text.ends_with("</testsuites>\n"));
        assert_eq!(text.matches("<testsuite ").count(), 2);
    }
}
