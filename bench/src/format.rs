//! How figures are written.

use crate::measure::Samples;

/// Three significant digits, without an exponent.
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    // Rounded first, because 9.999 becomes 10.0, which has one decimal.
    let value: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let decimals = usize::try_from((2 - magnitude).clamp(0, 3)).unwrap_or(0);
    let rounded = format!("{value:.decimals$}");
    let (sign, digits) = rounded
        .strip_prefix('-')
        .map_or(("", &*rounded), |digits| ("-", digits));
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut grouped = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place < whole && (whole - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A rate or a large number, in thousands or millions.
pub fn per_second(value: f64) -> String {
    match value.abs() {
        large if large >= 999_500.0 => format!("{} M", three(value / 1e6)),
        middle if middle >= 9_995.0 => format!("{} k", three(value / 1e3)),
        _ => three(value),
    }
}

/// A quotient.
pub fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.3}")
    } else {
        "–".to_owned()
    }
}

/// The median, and the range if there is more than one round.
pub fn spread(samples: &Samples, write: impl Fn(f64) -> String) -> String {
    match samples.len() {
        0 => "–".to_owned(),
        1 => write(samples.median()),
        _ => format!(
            "{} ({} – {})",
            write(samples.median()),
            write(samples.low()),
            write(samples.high())
        ),
    }
}

pub fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

pub fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// The median of the rounds' ratios.
pub fn ratio_cell(this: &Samples, other: &Samples) -> String {
    ratio(this.ratio_to(other).median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let written: Vec<String> = [0.0, 0.012_345, 1.234_5, 9.999, 41.26, 412.6, 1_234_567.0]
            .map(three)
            .into();
        assert_eq!(
            written,
            ["0.00", "0.012", "1.23", "10.0", "41.3", "413", "1,230,000"]
        );
        let rates = [950.0, 12_345.0, 999_600.0, 25_000_000.0].map(per_second);
        assert_eq!(rates, ["950", "12.3 k", "1.00 M", "25.0 M"]);
    }
}
