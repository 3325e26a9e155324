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

/** Facts about this user's other clients, provided by the program that embeds the client. */
export interface OwnClients {
  /** Returns the inspector ports of other clients. Called only for tunnels to a port of the inspectors' range on this machine. */
  inspectorPorts(): Promise<readonly number[]>;
  /** Tells whether a socket controls a client of this user. The path is absolute and has no symbolic links. */
  isAgentSocket(path: string): boolean;
}

export interface TargetGuardOptions {
  readonly clients: OwnClients | undefined;
  /** Port of this client's inspector. Null without an inspector. */
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

/** Time for which a check of the inspectors on this machine is valid. Visitors wait at most once in this time. */
const LOOK_VALID_MS = 1_000;

interface Suspect {
  readonly host: string;
  readonly port: number;
}

/** Result of the check whether a tunnel's targets may be published, shared by successive visitors. */
interface Looked {
  readonly targets: readonly Suspect[];
  lookedAt: number;
  verdict: Promise<void>;
  /** Result of the next scheduled check of the targets. Null if none is scheduled. */
  later: Promise<void> | null;
}

export class TargetGuard {
  readonly #options: TargetGuardOptions;
  readonly #looked = new WeakMap<GuardedSpec, Looked>();

  constructor(options: TargetGuardOptions) {
    this.#options = options;
  }

  /**
   * Checks a target. Returns null if the target is certainly allowed, as most are, without a lookup. Otherwise the promise rejects with a
   * Fault for a forbidden target.
   */
  check(spec: GuardedSpec): Promise<void> | null {
    if (spec.local_socket !== undefined && this.#options.clients?.isAgentSocket(realPath(spec.local_socket)) === true) {
      return Promise.reject(notAllowed(localText(spec), 'the socket controls a running tunnel client'));
    }
    const suspects = this.#suspectsOf(addressesOf(spec));
    return suspects.length === 0 ? null : this.#look(suspects);
  }

  /**
   * Checks the target for a visitor of an open tunnel, because an inspector may have started there, or a name may resolve differently.
   * Visitors within a second share one check.
   */
  checkVisit(spec: GuardedSpec): Promise<void> | null {
    const known = this.#looked.get(spec) ?? this.#remember(spec);
    const suspects = known.targets.length === 0 ? known.targets : this.#suspectsOf(known.targets);
    if (suspects.length === 0) return null;
    if (this.#options.clock.monotonic() - known.lookedAt < LOOK_VALID_MS) return known.verdict;
    return this.#lookNow(known);
  }

  /** Repeats checkVisit() with a check that starts after the call and within a second. */
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

  /** Returns the targets at ports possibly used by an inspector or an edge's management. */
  #suspectsOf(addresses: readonly Suspect[]): readonly Suspect[] {
    const edgePorts = this.#options.edgePorts();
    return addresses.filter(({ port }) => isInspectorPort(port) || edgePorts.includes(port));
  }

  async #look(suspects: readonly Suspect[]): Promise<void> {
    const { find = findAddresses, clients, edgePorts, inspectorPort } = this.#options;
    for (const { host, port } of suspects) {
      // A name without an address is harmless. Visitors get an error for it later.
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

/** Returns the TCP addresses of a tunnel's targets. Empty for UDP tunnels, because inspectors and an edge's management use TCP. */
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
