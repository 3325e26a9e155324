// Verdicts of `tunnel-server setup` about DNS records, ports and the mail server: a line each, with what to do. Pure functions.

export interface Verdict {
  /** `fix` needs a change by the operator; `note` is information without a verdict. */
  readonly level: 'ok' | 'fix' | 'note';
  readonly text: string;
}

const ok = (text: string): Verdict => ({ level: 'ok', text });
const fix = (text: string): Verdict => ({ level: 'fix', text });
const note = (text: string): Verdict => ({ level: 'note', text });

export interface RecordFinding {
  readonly name: string;
  readonly type: 'A' | 'NS';
  /** Target of an NS record, the server's own domain. */
  readonly target: string | null;
  readonly answer:
    | { readonly kind: 'found'; readonly values: readonly string[] }
    | { readonly kind: 'absent' }
    | { readonly kind: 'no-answer'; readonly reason: string };
}

export interface Reachability {
  /** Public addresses of this machine. Empty behind NAT. */
  readonly own: readonly string[];
  /** Whether visitors can connect by IPv6. */
  readonly listensOnIpv6: boolean;
}

/** Judges a DNS record. */
export const recordVerdict = (
  { name, type, target, answer }: RecordFinding,
  { own, listensOnIpv6 }: Reachability,
): Verdict => {
  const record = `DNS record ${name} ${type === 'A' ? 'A/AAAA' : 'NS'}`;
  if (answer.kind === 'absent') {
    const address = own.length === 0 ? 'the public address of this machine' : own.join(', ');
    const value = type === 'NS' ? (target ?? '') : address;
    return fix(`${record} is missing: at your DNS provider, create the record with the value ${value}`);
  }
  if (type === 'NS') {
    // A zone delegated to this server responds only while the server is running.
    return answer.kind === 'found' ? ok(record) : note(`${record}: the server checks the record when it is running`);
  }
  if (answer.kind === 'no-answer') {
    return fix(
      `${record}: no response from the resolver (${answer.reason}): check the network, or set [dns] resolvers`,
    );
  }
  const shown = answer.values.join(', ');
  const strays = answer.values.filter((value) => isElsewhere(value, own));
  if (strays.length > 0) {
    const rest = 'change the record, unless the address belongs to your router or load balancer';
    return fix(`${record} points to ${strays.join(', ')}, but this machine has ${own.join(', ')}: ${rest}`);
  }
  const unserved = listensOnIpv6 ? [] : answer.values.filter((value) => isIpv6(value) && own.includes(value));
  if (unserved.length > 0) {
    return fix(
      `${record} points to ${unserved.join(', ')}, but the server accepts only IPv4: set [server] host = "::", or delete the AAAA record`,
    );
  }
  return ok(`${record} points to ${shown}`);
};

export const isIpv6 = (address: string): boolean => address.includes(':');

/**
 * Whether an address belongs to a different machine. Without a public IPv4 address, the machine may be behind NAT, and any IPv4 address can
 * be right. IPv6 has no such translation: with a public IPv4 address and no IPv6 address, an AAAA record leads visitors and the
 * certificate authority elsewhere.
 */
const isElsewhere = (address: string, own: readonly string[]): boolean => {
  const hasSameFamily = own.some((one) => isIpv6(one) === isIpv6(address));
  return (hasSameFamily || (isIpv6(address) && own.length > 0)) && !own.includes(address);
};

export interface PortFinding {
  /** Key of server.toml that sets the port. */
  readonly key: string;
  readonly host: string;
  readonly port: number;
  readonly transport: 'TCP' | 'UDP';
  /** Error code of the attempt to open the port. Null if the port could be opened. */
  readonly problem: string | null;
}

/** Ports of a running server, from the addresses in its run.json. */
export const portsOfRun = (run: object): ReadonlySet<number> =>
  new Set(
    Object.values(run).flatMap((value) => {
      const [, port] = typeof value === 'string' ? (/:(\d+)(?:\/|$)/.exec(value) ?? []) : [];
      return port === undefined ? [] : [Number(port)];
    }),
  );

/**
 * Judges the ports: a line for all free ports, a line for all ports that need a privilege, and a line for each other problem. `inUse` has
 * the ports of this server, if the server is running.
 */
export const portVerdicts = (ports: readonly PortFinding[], inUse: ReadonlySet<number>): Verdict[] => {
  const free = ports.filter(({ problem }) => problem === null);
  const own = ports.filter(({ port, problem }) => problem === 'EADDRINUSE' && inUse.has(port));
  const denied = ports.filter(({ problem }) => problem === 'EACCES');
  const wrong = ports.filter((port) => ![...free, ...own, ...denied].includes(port));
  return [
    ...(free.length === 0 ? [] : [ok(`free ports: ${portList(free)}`)]),
    ...(own.length === 0 ? [] : [ok(`ports of the running server: ${portList(own)}`)]),
    ...(denied.length === 0
      ? []
      : [
          note(
            `ports that need a privilege: ${portList(denied)}. \`tunnel-server service install\` grants the privilege`,
          ),
        ]),
    ...wrong.map((port) => fix(portProblem(port))),
  ];
};

const portList = (ports: readonly PortFinding[]): string =>
  [...new Set(ports.map(({ port, transport }) => (transport === 'UDP' ? `${port}/udp` : String(port))))].join(', ');

const portProblem = ({ key, host, port, transport, problem }: PortFinding): string => {
  const where = `port ${port} (${transport}, ${key})`;
  if (problem === 'EADDRINUSE') {
    const list = transport === 'TCP' ? 'ss -ltnp' : 'ss -lunp';
    return `${where} is already in use: stop the program that uses the port (\`sudo ${list}\` lists programs), or change the key`;
  }
  if (problem === 'EADDRNOTAVAIL') return `${where}: ${host} is not an address of this machine: change the host`;
  return `${where} cannot be opened: ${problem}`;
};

export interface MailFinding {
  /** Host of the mail server. Null without a mail server. */
  readonly host: string | null;
  /** Reason why the mail server did not accept the connection. Null if accepted. */
  readonly problem: string | null;
}

export const mailVerdict = ({ host, problem }: MailFinding): Verdict => {
  if (host === null) {
    return note('no mail server: links of emails appear only in the log of the server. To send emails, add --smtp URL');
  }
  if (problem === null) return ok(`mail server ${host} accepts the connection`);
  return fix(`mail server ${host}: ${problem}: check host, port, user and password of --smtp`);
};

export const verdictLines = (verdicts: readonly Verdict[]): string[] =>
  verdicts.map(({ level, text }) => `  ${level.padEnd(4)}  ${text}`);

export interface NextFacts {
  readonly file: string;
  readonly isRoot: boolean;
  /** Whether the commands use the file without being told its path. */
  readonly isDefaultFile: boolean;
}

/** Quotes a word for a shell, in a command for the operator to copy. */
const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the next commands for the operator. Only root can install a service. */
export const nextLines = ({ file, isRoot, isDefaultFile }: NextFacts): string[] => {
  const config = `--config ${shellWord(file)}`;
  if (!isRoot) return ['Next, start the server:', `  tunnel-server stack ${config}`];
  return [
    'Next, start the server as a service, create your account with the printed link, then invite a teammate:',
    `  sudo tunnel-server service install${isDefaultFile ? '' : ` ${config}`}`,
    `  sudo -u tunnel tunnel-server admin invite teammate@example.com ${config}`,
  ];
};

/** Returns the command that repeats the checks, if a check needs a change. */
export const againLines = (verdicts: readonly Verdict[], { file, isRoot, isDefaultFile }: NextFacts): string[] => {
  if (verdicts.every(({ level }) => level !== 'fix')) return [];
  const again = `tunnel-server setup --recheck${isDefaultFile ? '' : ` --out ${shellWord(file)}`}`;
  return ['', 'After a change, check again:', `  ${isRoot ? 'sudo ' : ''}${again}`];
};
