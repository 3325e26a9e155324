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

/** Judges a DNS record. `own` has the public addresses of this machine, and is empty behind NAT. */
export const recordVerdict = ({ name, type, target, answer }: RecordFinding, own: readonly string[]): Verdict => {
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
  if (strays.length === 0) return ok(`${record} points to ${shown}`);
  const rest = 'change the record, unless the address belongs to your router or load balancer';
  return fix(`${record} points to ${strays.join(', ')}, but this machine has ${own.join(', ')}: ${rest}`);
};

const isV6 = (address: string): boolean => address.includes(':');

/** An address can be compared only with addresses of the same family: behind NAT, a machine often has a public IPv6 address only. */
const isElsewhere = (address: string, own: readonly string[]): boolean => {
  const comparable = own.filter((one) => isV6(one) === isV6(address));
  return comparable.length > 0 && !comparable.includes(address);
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

/** Judges the ports: a line for all free ports, a line for all ports that need a privilege, and a line for each other problem. */
export const portVerdicts = (ports: readonly PortFinding[]): Verdict[] => {
  const free = ports.filter(({ problem }) => problem === null);
  const denied = ports.filter(({ problem }) => problem === 'EACCES');
  const wrong = ports.filter(({ problem }) => problem !== null && problem !== 'EACCES');
  return [
    ...(free.length === 0 ? [] : [ok(`free ports: ${portList(free)}`)]),
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
  /** Whether `tunnel-server service install` uses the file without --config. */
  readonly isDefaultFile: boolean;
}

/** Returns the next commands for the operator. Only root can install a service. */
export const nextLines = ({ file, isRoot, isDefaultFile }: NextFacts): string[] => {
  if (!isRoot) return ['Next, start the server:', `  tunnel-server stack --config ${file}`];
  return [
    'Next, start the server as a service, then invite a teammate:',
    `  sudo tunnel-server service install${isDefaultFile ? '' : ` --config ${file}`}`,
    `  sudo -u tunnel tunnel-server admin invite teammate@example.com --config ${file}`,
  ];
};
