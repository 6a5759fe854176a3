//! Wires between hosts and switches.

use std::collections::VecDeque;

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Hosts come first, then switches.
    pub node: usize,
    /// Port of the node, from 0.
    pub port: usize,
}

/// Hosts and switches and the wires between them. A host has port 0 alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// How many hosts.
    pub hosts: usize,
    /// Ports of each switch.
    pub switches: Vec<usize>,
    /// The two ends of each wire.
    pub links: Vec<[Place; 2]>,
}

impl Topology {
    /// One switch.
    #[must_use]
    pub fn star(hosts: usize) -> Self {
        let mut topology = Self::new(hosts, 1);
        (0..hosts).for_each(|host| topology.link(host, hosts));
        topology
    }

    /// `leaves` switches of `hosts_each` hosts, each wired to all of `spines` switches.
    #[must_use]
    pub fn leaf_spine(leaves: usize, hosts_each: usize, spines: usize) -> Self {
        let hosts = leaves * hosts_each;
        let mut topology = Self::new(hosts, leaves + spines);
        (0..hosts).for_each(|host| topology.link(host, hosts + host / hosts_each));
        for leaf in 0..leaves {
            (0..spines).for_each(|spine| topology.link(hosts + leaf, hosts + leaves + spine));
        }
        topology
    }

    /// The fat-tree of switches of `k` ports (Al-Fares et al., SIGCOMM 2008): k^3/4 hosts, as much above as below each switch.
    ///
    /// # Panics
    /// If `k` is odd.
    #[must_use]
    pub fn fat_tree(k: usize) -> Self {
        assert!(
            k.is_multiple_of(2),
            "a fat-tree has switches of an even number of ports"
        );
        let half = k / 2;
        let (hosts, edges) = (k * half * half, k * half);
        let mut topology = Self::new(hosts, 2 * edges + half * half);
        let (edge, aggregation, core) = (hosts, hosts + edges, hosts + 2 * edges);
        (0..hosts).for_each(|host| topology.link(host, edge + host / half));
        for pod in 0..k {
            for up in 0..half {
                let above = aggregation + pod * half + up;
                (0..half).for_each(|down| topology.link(edge + pod * half + down, above));
                (0..half).for_each(|side| topology.link(above, core + up * half + side));
            }
        }
        topology
    }

    fn new(hosts: usize, switches: usize) -> Self {
        Self {
            hosts,
            switches: vec![0; switches],
            links: Vec::new(),
        }
    }

    fn link(&mut self, a: usize, b: usize) {
        let ends = [a, b].map(|node| self.open(node));
        self.links.push(ends);
    }

    fn open(&mut self, node: usize) -> Place {
        let Some(switch) = node.checked_sub(self.hosts) else {
            return Place { node, port: 0 };
        };
        let port = self.switches[switch];
        self.switches[switch] += 1;
        Place { node, port }
    }

    /// The port of a switch that a host hangs on: number of the switch, and of the port.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn port_of(&self, host: usize) -> (usize, usize) {
        let [end, at] = self.links[host];
        assert_eq!(end.node, host, "hosts are wired first, in order");
        (at.node - self.hosts, at.port)
    }

    /// Wires on the way from each host to `host`.
    #[must_use]
    pub fn hops(&self, host: usize) -> Vec<usize> {
        let far = distances(&self.neighbours(), host, self.hosts);
        let hosts = 0..self.hosts;
        hosts
            .map(|from| far[self.hosts + self.port_of(from).0] + 1)
            .collect()
    }

    /// Port and neighbour at its other end, for each wire of each node.
    fn neighbours(&self) -> Vec<Vec<(usize, usize)>> {
        let nodes = self.hosts + self.switches.len();
        let mut neighbours = vec![Vec::new(); nodes];
        for [a, b] in &self.links {
            neighbours[a.node].push((a.port, b.node));
            neighbours[b.node].push((b.port, a.node));
        }
        neighbours
    }

    /// For each switch, for each host, the ports on a shortest way to it.
    #[must_use]
    pub fn routes(&self) -> Vec<Vec<Vec<usize>>> {
        let neighbours = self.neighbours();
        let mut routes = vec![vec![Vec::new(); self.hosts]; self.switches.len()];
        for host in 0..self.hosts {
            let far = distances(&neighbours, host, self.hosts);
            for (switch, table) in routes.iter_mut().enumerate() {
                let at = self.hosts + switch;
                let nearer = neighbours[at]
                    .iter()
                    .filter(|(_, node)| far[*node] < far[at]);
                table[host] = nearer.map(|&(port, _)| port).collect();
            }
        }
        routes
    }
}

/// Wires from each node to `host`; no way leads through another host.
fn distances(neighbours: &[Vec<(usize, usize)>], host: usize, hosts: usize) -> Vec<usize> {
    let mut far = vec![usize::MAX; neighbours.len()];
    far[host] = 0;
    let mut queue = VecDeque::from([host]);
    while let Some(node) = queue.pop_front() {
        for &(_, next) in &neighbours[node] {
            if next >= hosts && far[next] == usize::MAX {
                far[next] = far[node] + 1;
                queue.push_back(next);
            }
        }
    }
    far
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_has_one_way() {
        let routes = Topology::star(3).routes();
        assert_eq!(routes, [[[0], [1], [2]]]);
    }

    #[test]
    fn a_leaf_has_a_way_by_each_spine() {
        let topology = Topology::leaf_spine(2, 4, 2);
        let routes = topology.routes();
        assert_eq!(topology.switches, [6, 6, 2, 2]);
        assert_eq!(
            routes[0][..5],
            [vec![0], vec![1], vec![2], vec![3], vec![4, 5]]
        );
        assert_eq!(routes[3][5], [1]);
    }

    #[test]
    fn a_fat_tree_is_wide_everywhere() {
        let topology = Topology::fat_tree(4);
        assert_eq!((topology.hosts, topology.switches.len()), (16, 20));
        assert!(topology.switches.iter().all(|&ports| ports == 4));
        let routes = topology.routes();
        assert_eq!(routes[0][15].len(), 2, "edge to another pod");
        assert_eq!(routes[8][15].len(), 2, "aggregation to another pod");
        assert_eq!(routes[16][15].len(), 1, "core");
        assert_eq!(topology.hops(15)[12..15], [4, 4, 2]);
        assert_eq!(topology.hops(15)[0], 6);
    }
}
