// Networks for the NAT matrix in separate namespaces: an "internet", the edge in it, and places behind each kind of NAT. The machine's
// own network is not changed, and none of the namespaces can reach it.
import { spawnSync } from 'node:child_process';

/**
 * Kinds of NAT in terms of datagrams. open: every UDP port is forwarded; moderate: the same public port for all destinations; strict: a
 * random public port for each destination.
 */
export const KINDS = ['none', 'open', 'moderate', 'strict', 'blocked'];

const PREFIX = `nat-${process.pid}`;
const made = new Set();

export const EDGE_ADDRESS = '198.51.100.1';

function run(command, args, input) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', input });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

const namespaceOf = (name) => `${PREFIX}-${name}`;
const within = (namespace, ...args) => run('ip', ['-n', namespace, ...args]);
const rules = (namespace, text) => run('ip', ['netns', 'exec', namespace, 'nft', '-f', '-'], text);

/** Returns why the networks cannot be created on this machine, or null. */
export function missing() {
  if (process.platform !== 'linux') return 'network namespaces are of Linux';
  if (process.getuid() !== 0) return 'needs root';
  for (const [command, flag] of [
    ['nft', '--version'],
    ['ip', '-V'],
  ]) {
    if (spawnSync(command, [flag]).status !== 0) return `needs ${command} (Debian: nftables iproute2)`;
  }
  try {
    rules(
      create('try'),
      'table ip t { chain c { type nat hook postrouting priority srcnat; masquerade random,fully-random; }; }',
    );
    return null;
  } catch (error) {
    return error.message;
  } finally {
    removeAll();
  }
}

function create(name) {
  const namespace = namespaceOf(name);
  run('ip', ['netns', 'add', namespace]);
  made.add(namespace);
  within(namespace, 'link', 'set', 'lo', 'up');
  return namespace;
}

export function removeAll() {
  for (const namespace of made) spawnSync('ip', ['netns', 'del', namespace]);
  made.clear();
}

/** Connects two namespaces with a virtual cable. With `bridge`, the first end becomes a port of that bridge. */
function join(a, b, { nameA, nameB, bridge }) {
  run('ip', ['-n', a, 'link', 'add', nameA, 'type', 'veth', 'peer', 'name', nameB, 'netns', b]);
  if (bridge !== undefined) within(a, 'link', 'set', nameA, 'master', bridge);
  within(a, 'link', 'set', nameA, 'up');
  within(b, 'link', 'set', nameB, 'up');
}

const MASQUERADE = {
  open: 'masquerade',
  moderate: 'masquerade',
  strict: 'masquerade random,fully-random',
  blocked: 'masquerade',
};

/** Returns the firewall rules of a home router: only replies come in, and unsolicited packets are dropped silently. */
const natRules = (kind) => `
table ip nat {
  chain in { type nat hook prerouting priority dstnat;
    ${kind === 'open' ? 'iifname "wan" meta l4proto udp dnat to 10.9.0.2' : ''}
  }
  chain out { type nat hook postrouting priority srcnat; oifname "wan" ${MASQUERADE[kind]}; }
}
table ip filter {
  chain in { type filter hook input priority filter; policy accept; iifname "wan" ct state new drop; }
  chain through { type filter hook forward priority filter; policy accept;
    ${kind === 'blocked' ? 'meta l4proto udp drop' : ''}
    ${kind === 'open' ? '' : 'iifname "wan" ct state new drop'}
  }
}`;

/** Firewall rules of the "internet". They apply to every packet between two places, but not to packets between a place and the edge. */
const MIDDLE = `
table bridge middle {
  chain through { type filter hook forward priority filter; policy accept;
    ip saddr ${EDGE_ADDRESS} accept
    ip daddr ${EDGE_ADDRESS} accept
    meta protocol ip ip protocol udp jump peers
  }
  chain peers { }
}`;

export class Networks {
  #wan;
  #hosts = 1;
  edge;

  constructor() {
    this.#wan = create('wan');
    within(this.#wan, 'link', 'add', 'br0', 'type', 'bridge');
    within(this.#wan, 'link', 'set', 'br0', 'up');
    rules(this.#wan, MIDDLE);
    this.edge = this.#attach('edge', EDGE_ADDRESS);
  }

  /** Creates a namespace for programs at a place behind this kind of NAT, with a separate public address. */
  place(name, kind) {
    this.#hosts += 1;
    const address = `198.51.100.${this.#hosts}`;
    if (kind === 'none') return this.#attach(name, address);
    const gateway = this.#attach(`${name}-gw`, address);
    const host = create(name);
    join(gateway, host, { nameA: 'lan', nameB: 'eth0' });
    within(gateway, 'addr', 'add', '10.9.0.1/24', 'dev', 'lan');
    within(host, 'addr', 'add', '10.9.0.2/24', 'dev', 'eth0');
    within(host, 'route', 'add', 'default', 'via', '10.9.0.1');
    run('ip', ['netns', 'exec', gateway, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    // The timeout is shorter than that of any real router: a flow that is silent for longer is forgotten.
    for (const key of ['udp_timeout', 'udp_timeout_stream']) {
      run('ip', ['netns', 'exec', gateway, 'sysctl', '-qw', `net.netfilter.nf_conntrack_${key}=20`]);
    }
    rules(gateway, natRules(kind));
    return host;
  }

  /** Creates a second namespace behind the NAT of the place. The two namespaces reach each other without the NAT. */
  neighbour(name, place) {
    const gateway = `${place}-gw`;
    const host = create(name);
    join(gateway, host, { nameA: 'lan2', nameB: 'eth0' });
    within(gateway, 'addr', 'add', '10.9.1.1/24', 'dev', 'lan2');
    within(host, 'addr', 'add', '10.9.1.2/24', 'dev', 'eth0');
    within(host, 'route', 'add', 'default', 'via', '10.9.1.1');
    return host;
  }

  /** Sets the rule for every datagram between two places: `drop`, random loss, or no rule. */
  between(rule) {
    rules(this.#wan, `flush chain bridge middle peers\n${rule === '' ? '' : `add rule bridge middle peers ${rule}`}\n`);
  }

  #attach(name, address) {
    const namespace = create(name);
    join(this.#wan, namespace, { nameA: `p${this.#hosts}`, nameB: 'wan', bridge: 'br0' });
    within(namespace, 'addr', 'add', `${address}/24`, 'dev', 'wan');
    return namespace;
  }
}
