//! ECN marking by the depth of a queue (RED of RFC 2309 on the momentary depth, as DCQCN asks for).

use fastrand::Rng;

/// When a frame is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// Up to this many bytes none is.
    pub kmin: u64,
    /// Above this every one is.
    pub kmax: u64,
    /// Probability just below `kmax`, in millionths; it rises from 0 at `kmin`.
    pub pmax_ppm: u32,
}

impl Red {
    /// 4 kB and 16 kB for each Gb/s of the port and 20 %: 400 kB and 1600 kB at 100 Gb/s.
    #[must_use]
    pub const fn for_rate(mbps: u32) -> Self {
        Self {
            kmin: 4 * mbps as u64,
            kmax: 16 * mbps as u64,
            pmax_ppm: 200_000,
        }
    }

    /// Whether a frame that leaves `depth` bytes behind is marked.
    pub fn hits(&self, depth: u64, rng: &mut Rng) -> bool {
        if depth <= self.kmin {
            return false;
        }
        if depth > self.kmax {
            return true;
        }
        let ppm = u64::from(self.pmax_ppm) * (depth - self.kmin) / (self.kmax - self.kmin);
        u64::from(rng.u32(..1_000_000)) < ppm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_rises_from_kmin_and_jumps_at_kmax() {
        let red = Red::for_rate(100_000);
        assert_eq!((red.kmin, red.kmax), (400_000, 1_600_000));
        let mut rng = Rng::with_seed(1);
        let mut share = |depth| {
            let hits = (0..100_000).filter(|_| red.hits(depth, &mut rng)).count();
            hits as f64 / 1e5
        };
        for (depth, expected) in [
            (0, 0.0),
            (400_000, 0.0),
            (700_000, 0.05),
            (1_000_000, 0.1),
            (1_600_000, 0.2),
            (1_600_001, 1.0),
        ] {
            let found = share(depth);
            assert!((found - expected).abs() < 0.005, "{found} at {depth}");
        }
    }
}
