// Reading config.yml again while its tunnels run: what it asks for now is compared with what runs, and the difference is carried out. Which
// difference means what is decided by planReload and the rows of the options; two reloads never overlap.
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

/** The file as it is now, checked: all of it can be tried. */
export interface FileContent {
  readonly entries: readonly (ClientSpec | ConnectPeerOptions)[];
  readonly values: ClientConfig;
}

export interface ReloaderOptions {
  /** What the client was started with. */
  readonly started: ClientConfig;
  /** Throws for a file that is not good: then nothing has changed. */
  readonly read: () => FileContent;
  /** After it was carried out. */
  readonly onApplied?: (content: FileContent) => void;
}

export class Reloader {
  readonly #options: ReloaderOptions;
  /** A reload that waits reads the file when it begins, so that one is enough for all who ask meanwhile. */
  #reloads: SerialRuns<ReloadOutcome> | null = null;

  constructor(options: ReloaderOptions) {
    this.#options = options;
  }

  /** The same client each time. */
  reload(running: RunningClient): Promise<ReloadOutcome> {
    this.#reloads ??= new SerialRuns(() => this.#apply(running));
    return this.#reloads.run();
  }

  async #apply(running: RunningClient): Promise<ReloadOutcome> {
    const { started, read, onApplied } = this.#options;
    const content = read();
    const wanted = new Map(content.entries.map((entry) => [nameOf(entry), entry]));
    const plan = planReload(running.tunnels.flatMap(runningEntry), [...wanted.values()].map(wantedEntry));
    // All ends before the first beginning: a name or a port may go from one entry to another.
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
    // All else was carried out; the tunnel goes on with the policy that it had.
    const refusal = refusals.find((fault) => fault !== null);
    if (refusal !== undefined && refusal !== null) throw refusal;
    return reloadOutcome(plan, restartRequired(comparable(started), comparable(content.values)));
  }
}

/** null: it was. */
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

/** One that was refused is asked for again; one that is closing has nothing left to change. */
const runningEntry = ({ state, source, wanted }: RunningTunnel): RunningEntry[] =>
  state === 'refused' || state === 'closing' ? [] : [{ ...wantedEntry(wanted), isOfFile: source === 'file' }];

/** Secrets as hashes: they say whether two are the same, and nothing else. */
const comparable = ({ tunnels: _, ...keys }: ClientConfig): EntryFields =>
  Object.fromEntries(
    Object.entries(keys).map(([key, value]) => [key, value instanceof Secret ? sha256Hex(value.reveal()) : value]),
  );
