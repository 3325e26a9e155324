// Local places that no tunnel may lead to: the inspectors and agents of this user's clients, the ports with which an edge on this machine is managed,
// and the control sockets of the system. A visitor who reached one of these places could control the client or the machine.
import { lookup } from 'node:dns/promises';
import { reachesOwnMachine } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import { notAllowed, realPath } from './control-sockets.ts';
import type { FindAddresses } from './local-addresses.ts';
import { type LocalSpec, localTargetOf, localText } from './local-target.ts';
import { type ServiceTable, serviceTargets } from './service-targets.ts';

/** Ports of 127.0.0.1 that inspectors try in this order. Every client takes the first that is free. */
export const INSPECTOR_PORTS: readonly number[] = Array.from({ length: 100 }, (_, index) => 4300 + index);

/** What the program around the client knows of this user's other clients. */
export interface OwnClients {
  /** Ports of inspectors of other clients. Asked only when a tunnel is to lead to a port of the inspectors' range on this machine. */
  inspectorPorts(): Promise<readonly number[]>;
  /** Whether a client of this user is controlled through this socket. The path is absolute and has no symbolic links. */
  isAgentSocket(path: string): boolean;
}

export interface TargetGuardOptions {
  readonly clients: OwnClients | undefined;
  /** Port of this client's inspector, or null while it has none. */
  readonly inspectorPort: () => number | null;
  /** REST and metrics ports of an edge on this machine. */
  readonly edgePorts: () => readonly number[];
  readonly clock: Pick<Clock, 'monotonic' | 'setTimeout'>;
  readonly find?: FindAddresses;
}

type GuardedSpec = LocalSpec & {
  readonly proto: string;
  readonly p2p_service?: 'tcp' | 'udp' | undefined;
  readonly services?: ServiceTable | undefined;
};

/** Visitors wait for a look at the inspectors of this machine at most once in this time. */
const LOOK_VALID_MS = 1_000;

interface Suspect {
  readonly host: string;
  readonly port: number;
}

/** What is remembered of a tunnel's targets between two visitors. */
interface Looked {
  readonly targets: readonly Suspect[];
  lookedAt: number;
  verdict: Promise<void>;
  /** What the next look finds, while somebody waits for it. */
  later: Promise<void> | null;
}

export class TargetGuard {
  readonly #options: TargetGuardOptions;
  readonly #looked = new WeakMap<GuardedSpec, Looked>();

  constructor(options: TargetGuardOptions) {
    this.#options = options;
  }

  /** Returns null where the target is allowed for certain, which most are: nothing is looked up then. Else settles, or rejects with a Fault. */
  check(spec: GuardedSpec): Promise<void> | null {
    if (spec.local_socket !== undefined && this.#options.clients?.isAgentSocket(realPath(spec.local_socket)) === true) {
      return Promise.reject(notAllowed(localText(spec), 'the socket controls a running tunnel client'));
    }
    const suspects = this.#suspectsOf(addressesOf(spec));
    return suspects.length === 0 ? null : this.#look(suspects);
  }

  /**
   * As check(), for a visitor of a tunnel that is open: an inspector may have started at its target since, or a name may lead elsewhere. Visitors of the
   * same second share one look.
   */
  checkVisit(spec: GuardedSpec): Promise<void> | null {
    const known = this.#looked.get(spec) ?? this.#remember(spec);
    const suspects = known.targets.length === 0 ? known.targets : this.#suspectsOf(known.targets);
    if (suspects.length === 0) return null;
    if (this.#options.clock.monotonic() - known.lookedAt < LOOK_VALID_MS) return known.verdict;
    return this.#lookNow(known);
  }

  /** As checkVisit(), by a look that begins after this call and within a second. */
  checkLater(spec: GuardedSpec): Promise<void> {
    const known = this.#looked.get(spec) ?? this.#remember(spec);
    known.later ??= this.#lookLater(known);
    return known.later;
  }

  async #lookLater(known: Looked): Promise<void> {
    await new Promise<void>((resolve) => this.#options.clock.setTimeout(resolve, LOOK_VALID_MS));
    known.later = null;
    await this.#lookNow(known);
  }

  #lookNow(known: Looked): Promise<void> {
    known.lookedAt = this.#options.clock.monotonic();
    known.verdict = this.#look(this.#suspectsOf(known.targets));
    return known.verdict;
  }

  #remember(spec: GuardedSpec): Looked {
    const looked: Looked = {
      targets: addressesOf(spec),
      lookedAt: Number.NEGATIVE_INFINITY,
      verdict: Promise.resolve(),
      later: null,
    };
    this.#looked.set(spec, looked);
    return looked;
  }

  /** Targets at a port where an inspector or an edge's management may listen. */
  #suspectsOf(addresses: readonly Suspect[]): readonly Suspect[] {
    const edgePorts = this.#options.edgePorts();
    return addresses.filter(({ port }) => isInspectorPort(port) || edgePorts.includes(port));
  }

  async #look(suspects: readonly Suspect[]): Promise<void> {
    const { find = findAddresses, clients, edgePorts, inspectorPort } = this.#options;
    for (const { host, port } of suspects) {
      // A name without an address leads nowhere; visitors are told so.
      const addresses = await find(host).catch(() => []);
      if (!addresses.some(({ address }) => reachesOwnMachine(address))) continue;
      const target = localText({ local_host: host, local_port: port });
      if (edgePorts().includes(port))
        throw notAllowed(target, 'the port is the management port of the edge on this computer');
      if (!isInspectorPort(port)) continue;
      const inspectors = [inspectorPort(), ...((await clients?.inspectorPorts()) ?? [])];
      if (inspectors.includes(port)) throw notAllowed(target, 'the port is the inspector of a running tunnel client');
    }
  }
}

/** Where a tunnel leads, but for sockets and folders. Inspectors and the management of an edge speak TCP, so tunnels for UDP lead nowhere here. */
const addressesOf = (spec: GuardedSpec): readonly Suspect[] => {
  if (spec.proto === 'udp' || spec.p2p_service === 'udp') return [];
  const addresses: Suspect[] = [...serviceTargets(spec.services ?? {}, null).values()].flatMap((target) =>
    target.kind === 'address' ? [target] : [],
  );
  const own = spec.local_port === undefined ? null : localTargetOf(spec, null);
  if (own?.kind === 'address') addresses.push(own);
  return addresses;
};

const findAddresses: FindAddresses = (host) => lookup(host, { all: true });

const isInspectorPort = (port: number): boolean => INSPECTOR_PORTS.includes(port);
