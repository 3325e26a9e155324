// Networks of the matrix, in namespaces of their own: one "internet", the edge in it, and places behind each kind of NAT. Nothing of the
// machine's own network is touched, and none of these has a way out.
import { spawnSync } from 'node:child_process';

/** As datagrams meet them. open: every UDP port is forwarded; moderate: one port for all destinations; strict: a random one for each. */
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

/** Why they cannot be made here, or null. */
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

/** A cable between two namespaces; `bridge`: its first end is a port of that. */
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

/** What a home router does: replies alone come in, and what was not asked for is dropped without a word. */
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

/** The rules of the middle: they see every packet between two places, and none between a place and the edge, unless they ask for it. */
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

  /** A namespace for programs at a place of this kind, with a public address of its own in front. */
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
    // Shorter than any that is met in the field: what is silent for longer is forgotten.
    for (const key of ['udp_timeout', 'udp_timeout_stream']) {
      run('ip', ['netns', 'exec', gateway, 'sysctl', '-qw', `net.netfilter.nf_conntrack_${key}=20`]);
    }
    rules(gateway, natRules(kind));
    return host;
  }

  /** Another namespace behind the NAT of that place: the two meet without it. */
  neighbour(name, place) {
    const gateway = `${place}-gw`;
    const host = create(name);
    join(gateway, host, { nameA: 'lan2', nameB: 'eth0' });
    within(gateway, 'addr', 'add', '10.9.1.1/24', 'dev', 'lan2');
    within(host, 'addr', 'add', '10.9.1.2/24', 'dev', 'eth0');
    within(host, 'route', 'add', 'default', 'via', '10.9.1.1');
    return host;
  }

  /** What happens to every datagram between two places: `drop`, or a part of them by chance, or nothing. */
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
