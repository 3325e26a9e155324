// Reload of config.yml in a running client: compares the entries of the file with the running tunnels, and applies the difference.
// planReload and the option rows decide about the effect of a difference. Two reloads never overlap.
import { type ClientSpec, type ConnectPeerOptions, peerFields, tunnelFields } from '@tunnel/client';
import { type ClientConfig } from '@tunnel/config/client';
import { Fault } from '@tunnel/errors';
import { Secret, SerialRuns, sha256Hex } from '@tunnel/runtime';
import {
  type EntryFields,
  planReload,
  type ReloadOutcome,
  type RunningEntry,
  reloadOutcome,
  restartRequired,
  type WantedEntry,
} from '@tunnel/tunnel-spec';
import { isTunnel, nameOf, type RunningClient, type RunningTunnel } from './hooks/running-client.ts';

/** The validated content of the config file, ready to be applied. */
export interface FileContent {
  readonly entries: readonly (ClientSpec | ConnectPeerOptions)[];
  readonly values: ClientConfig;
}

export interface ReloaderOptions {
  /** Configuration at the start of the client. */
  readonly started: ClientConfig;
  /** Reads the config file. Throws for an invalid file, before anything has changed. */
  readonly read: () => FileContent;
  /** Called after the content has been applied. */
  readonly onApplied?: (content: FileContent) => void;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  /** Queue of reloads. A waiting reload reads the file only when it starts, so all callers that arrive in the meantime share the reload. */
  #reloads: SerialRuns<ReloadOutcome> | null = null;

  constructor(options: ReloaderOptions) {
    this.#options = options;
  }

  /** Reloads the config file. `running` must be the same client in every call. */
  reload(running: RunningClient): Promise<ReloadOutcome> {
    this.#reloads ??= new SerialRuns(() => this.#apply(running));
    return this.#reloads.run();
  }

  async #apply(running: RunningClient): Promise<ReloadOutcome> {
    const { started, read, onApplied } = this.#options;
    const content = read();
    const wanted = new Map(content.entries.map((entry) => [nameOf(entry), entry]));
    const plan = planReload(running.tunnels.flatMap(runningEntry), [...wanted.values()].map(wantedEntry));
    // All tunnels are closed before the first tunnel is opened, because a name or a port can move from one entry to another.
    const [released, refusals] = await Promise.all([
      Promise.all(plan.reopen.map(async (name) => [name, await running.release(name)] as const)),
      Promise.all(plan.update.map((name) => updated(running, wanted.get(name) as ClientSpec))),
      ...plan.retarget.map((name) => running.retarget(wanted.get(name) as ClientSpec)),
      ...plan.close.map((name) => running.remove(name, 'reloaded')),
    ]);
    const endpoints = new Map(released);
    for (const name of [...plan.reopen, ...plan.open]) {
      running.begin(wanted.get(name) as ClientSpec | ConnectPeerOptions, endpoints.get(name) ?? null);
    }
    for (const name of [...plan.keep, ...plan.retarget, ...plan.update]) running.adopt(name);
    onApplied?.(content);
    // All other changes have been applied. The tunnel with the rejected update keeps its previous policy.
    const refusal = refusals.find((fault) => fault !== null);
    if (refusal !== undefined && refusal !== null) throw refusal;
    return reloadOutcome(plan, restartRequired(comparable(started), comparable(content.values)));
  }
}

/** Updates a tunnel. Returns the fault of a rejected update, or null on success. */
const updated = async (running: RunningClient, spec: ClientSpec): Promise<Fault | null> => {
  try {
    await running.update(spec);
    return null;
  } catch (error) {
    const { code, message } = Fault.from(error);
    return Fault.fromWire(code, `${nameOf(spec)}: ${message}`);
  }
};

const wantedEntry = (entry: ClientSpec | ConnectPeerOptions): WantedEntry =>
  isTunnel(entry)
    ? { name: nameOf(entry), kind: 'tunnel', fields: tunnelFields(entry) }
    : { name: nameOf(entry), kind: 'peer', fields: peerFields(entry) };

/**
 * Converts a running tunnel for planReload. A rejected tunnel is left out, so that the plan requests the tunnel again. A closing tunnel
 * is left out, because nothing of it can change.
 */
const runningEntry = ({ state, source, wanted }: RunningTunnel): RunningEntry[] =>
  state === 'refused' || state === 'closing' ? [] : [{ ...wantedEntry(wanted), isOfFile: source === 'file' }];

/** Converts a configuration to comparable values. Secrets become hashes, which reveal only whether two secrets are equal. */
const comparable = ({ tunnels: _, ...keys }: ClientConfig): EntryFields =>
  Object.fromEntries(
    Object.entries(keys).map(([key, value]) => [key, value instanceof Secret ? sha256Hex(value.reveal()) : value]),
  );
