//! Project tasks.
fn main() -> anyhow::Result<()> {
    Ok(())
}
