// Local places that no tunnel may lead to: the inspectors and agents of this user's clients, the ports with which an edge on this machine is managed,
// and the control sockets of the system. A visitor who reached one of these places could control the client or the machine.
import { lookup } from 'node:dns/promises';
import { reachesOwnMachine } from '@tunnel/core';
import { notAllowed, realPath } from './control-sockets.ts';
import { INSPECTOR_PORTS } from './inspector-ports.ts';
import type { FindAddresses } from './local-addresses.ts';
import { type LocalSpec, localTargetOf, localText } from './local-target.ts';
import { type ServiceTable, serviceTargets } from './service-targets.ts';

/** What the program around the client knows of this user's other clients. */
export interface OwnClients {
  /** Ports of inspectors of other clients. Asked only when a tunnel is to lead to a port of the inspectors' range on this machine. */
  inspectorPorts(): Promise<readonly number[]>;
  /** Whether a client of this user is controlled through this socket. The path is absolute and has no symbolic links. */
  isAgentSocket(path: string): boolean;
}

export interface TargetGuardDeps {
  readonly clients: OwnClients | undefined;
  /** Port of this client's inspector, or null while it has none. */
  readonly inspectorPort: () => number | null;
  /** REST and metrics ports of an edge on this machine. */
  readonly edgePorts: () => readonly number[];
  readonly find?: FindAddresses;
}

type GuardedSpec = LocalSpec & {
  readonly protocol: string;
  readonly service?: 'tcp' | 'udp';
  readonly services?: ServiceTable;
};

interface Suspect {
  readonly host: string;
  readonly port: number;
}

export class TargetGuard {
  readonly #deps: TargetGuardDeps;

  constructor(deps: TargetGuardDeps) {
    this.#deps = deps;
  }

  /** Returns null where the target is allowed for certain, which most are: nothing is looked up then. Else settles, or rejects with a Fault. */
  check(spec: GuardedSpec): Promise<void> | null {
    if (spec.localSocket !== undefined && this.#deps.clients?.isAgentSocket(realPath(spec.localSocket)) === true) {
      return Promise.reject(notAllowed(localText(spec), 'it controls a running tunnel client'));
    }
    const suspects = this.#suspectsOf(spec);
    return suspects.length === 0 ? null : this.#look(suspects);
  }

  /** Targets at a port where an inspector or an edge's management may listen. Both speak TCP, so tunnels for UDP have none. */
  #suspectsOf(spec: GuardedSpec): Suspect[] {
    if (spec.protocol === 'udp' || spec.service === 'udp') return [];
    const addresses: Suspect[] = [...serviceTargets(spec.services ?? {}, null).values()].flatMap((target) =>
      target.kind === 'address' ? [target] : [],
    );
    const own = spec.localPort === undefined ? null : localTargetOf(spec, null);
    if (own?.kind === 'address') addresses.push(own);
    const edgePorts = this.#deps.edgePorts();
    return addresses.filter(({ port }) => isInspectorPort(port) || edgePorts.includes(port));
  }

  async #look(suspects: readonly Suspect[]): Promise<void> {
    const { find = findAddresses, clients, edgePorts, inspectorPort } = this.#deps;
    for (const { host, port } of suspects) {
      // A name without an address leads nowhere; visitors are told so.
      const addresses = await find(host).catch(() => []);
      if (!addresses.some(({ address }) => reachesOwnMachine(address))) continue;
      const target = localText({ localHost: host, localPort: port });
      if (edgePorts().includes(port)) throw notAllowed(target, 'the edge on this machine is managed there');
      if (!isInspectorPort(port)) continue;
      const inspectors = [inspectorPort(), ...((await clients?.inspectorPorts()) ?? [])];
      if (inspectors.includes(port)) throw notAllowed(target, 'it is the inspector of a running tunnel client');
    }
  }
}

const findAddresses: FindAddresses = (host) => lookup(host, { all: true });

const isInspectorPort = (port: number): boolean => INSPECTOR_PORTS.includes(port);
