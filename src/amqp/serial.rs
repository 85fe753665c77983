//! Numbers that go round: what is behind and what is ahead is a matter of less than half the circle (RFC 1982).

/// How far a number is ahead of another; none, if it is behind.
pub(crate) fn ahead(number: u32, of: u32) -> Option<u32> {
    let distance = number.wrapping_sub(of);
    (distance <= i32::MAX as u32).then_some(distance)
}

#[test]
fn a_number_past_the_end_of_the_circle_is_ahead() {
    assert_eq!(ahead(3, 3), Some(0));
    assert_eq!(ahead(2, u32::MAX), Some(3));
    assert_eq!(ahead(u32::MAX, 2), None);
    assert_eq!(ahead(1 << 31, 0), None);
}
