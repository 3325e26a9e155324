// Backend of an edge with a platform. Checks keys and tunnels with the platform, keeps the results for outages, reports events, and
// follows changes. The admin token is checked by the edge itself, and the operator's tunnels are not reported.
import {
  type AccountRights,
  type EdgeChange,
  type Heartbeat,
  type HeartbeatAnswer,
  showProtocol,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Owner } from '@tunnel/rules/tunnels';
import { type Clock, equalInConstantTime, type Logger, type Secret, sha256Hex } from '@tunnel/runtime';
import { AccountTunnels, ClosedAccounts } from './accounts.ts';
import type { Backend, KeyVerdict, Revocation, TunnelAdmissionRequest, TunnelClosed, TunnelOpened } from './backend.ts';
import { PlatformCertificates } from './certificates/platform-certificates.ts';
import { ChangeStream } from './change-stream.ts';
import { Heartbeats } from './heartbeats.ts';
import { type CachedKey, KeyCache } from './key-cache.ts';
import { KeyCopies, type KeyCopiesOptions } from './key-copies.ts';
import { endpointFields, PlatformNames } from './names/platform-names.ts';
import type { ReservedNames } from './names/reserved-names.ts';
import type { DomainKeepers } from './names/verified-domains.ts';
import { type LinkFetch, PlatformLink } from './platform-link.ts';
import { UsageLog } from './usage-log.ts';

/** Interval between heartbeats from the edge to the platform. */
export const PLATFORM_HEARTBEAT_MS = 5000;
/** Maximum concurrent key checks after the edge has missed changes and checks all keys again. */
const KEY_CHECKS_AT_ONCE = 8;

export interface PlatformBackendOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly adminToken: Secret;
  readonly platform: { readonly fetch: LinkFetch; readonly url: string; readonly credential: Secret };
  /** Folder of the usage journal. */
  readonly folder: string;
  /** Folder for the files of names. */
  readonly namesFolder: string;
  /**
   * Certificate options. Null if the edge uses no platform certificates. `copies` is the folder of disk copies, or null to keep no
   * copies.
   */
  readonly certificates: { readonly copies: string | null } | null;
  /** Location of the disk copy of known keys, for a start without the platform. */
  readonly keyCopies: Pick<KeyCopiesOptions, 'file' | 'isOfOneRun'>;
  /** Random id of the current run of the edge. */
  readonly runId: string;
  /** Returns the content of a heartbeat, except for the run id and the number of tunnels. */
  readonly describe: () => Pick<Heartbeat, 'region' | 'api_url' | 'api_secret' | 'version' | 'reach' | 'port_ranges'>;
}

const ADMIN_KEY_ID = 'admin';

/** Parses the platform's public URL, to which visitors are sent. Returns null unless the text is a complete http or https URL. */
const webAddressOf = (text: string): string | null => {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : null;
};

export class PlatformBackend implements Backend {
  readonly #adminToken: Secret;
  readonly #runId: string;
  readonly #link: PlatformLink;
  readonly #keys: KeyCache;
  readonly #keyCopies: KeyCopies;
  readonly #tunnels = new AccountTunnels();
  readonly #closed = new ClosedAccounts();
  readonly #usage: UsageLog;
  readonly #names: PlatformNames;
  readonly certificates: PlatformCertificates | undefined;
  readonly #heartbeats: Heartbeats;
  readonly #changes: ChangeStream;
  readonly #listeners = new Set<(revocation: Revocation) => void>();
  #platformUrl: string | null = null;

  constructor(options: PlatformBackendOptions) {
    const { clock, logger, random, runId, folder, describe } = options;
    this.#adminToken = options.adminToken;
    this.#runId = runId;
    const link = new PlatformLink({ clock, ...options.platform });
    this.#link = link;
    this.#usage = new UsageLog({ clock, logger, link, runId, folder });
    this.#names = new PlatformNames({ clock, logger, link, folder: options.namesFolder });
    this.certificates = certificatesOf(options, link);
    this.#changes = new ChangeStream({ clock, link, random, onChange: (change) => this.#onChange(change) });
    this.#heartbeats = new Heartbeats({
      clock,
      logger,
      link,
      everyMs: PLATFORM_HEARTBEAT_MS,
      describe: () => ({ run_id: runId, ...describe(), open_tunnels: this.#tunnels.size }),
      onSent: () => this.#followAfter(this.#changes.since),
      onBack: () => {
        this.#names.platformBack();
        this.certificates?.platformBack();
        this.#usage.deliver();
      },
    });
    const ask = async (tokenHash: string) => {
      await this.#heartbeats.introduced();
      return link.verifyKey(tokenHash);
    };
    this.#keys = new KeyCache({ clock, ask, onChanged: () => this.#keyCopies.changed() });
    const { credential } = options.platform;
    const read = () => this.#keys.kept();
    this.#keyCopies = new KeyCopies({ ...options.keyCopies, credential, clock, logger, read });
  }

  get platformUrl(): string | null {
    return this.#platformUrl;
  }

  async verifyKey(token: string): Promise<KeyVerdict> {
    if (token === '') return { ok: false, fault: new Fault('AUTH_TOKEN_MISSING') };
    const admin = this.#adminToken.reveal();
    if (equalInConstantTime(token, admin) && admin !== '') {
      return { ok: true, owner: { kind: 'operator' }, keyId: ADMIN_KEY_ID };
    }
    return this.#keys.verify(sha256Hex(token));
  }

  // ---- tunnels ----

  async admitTunnel(asked: TunnelAdmissionRequest): Promise<Fault | null> {
    const accountId = accountOf(asked.owner);
    if (accountId !== null && this.#usage.isFull) return new Fault('AUTH_BACKEND_AWAY');
    const refusal =
      accountId === null
        ? await this.#names.refusalForOperator(asked, () => this.#heartbeats.introduced())
        : await this.#admission(asked, accountId);
    if (refusal === null) this.#names.admitted(asked);
    return refusal;
  }

  async #admission(asked: TunnelAdmissionRequest, accountId: string): Promise<Fault | null> {
    await this.#usage.endsTold(accountId);
    try {
      await this.#heartbeats.introduced();
      const answer = await this.#link.openTunnel({
        run_id: this.#runId,
        tunnel_id: asked.tunnelId,
        session_id: asked.sessionId,
        account_id: accountId,
        key_id: asked.keyId,
        name: asked.name,
        // JSON omits `client_name` if the client has reported no name.
        client_name: asked.clientName,
        protocol: showProtocol(asked.protocol),
        custom_subdomain: asked.customSubdomain,
        ...endpointFields(asked),
        at: asked.at,
      });
      const refusal = answer.ok ? null : Fault.fromWire(answer.code, answer.message);
      this.#closed.learn(accountId, refusal);
      if (refusal !== null) return refusal;
      if (asked.domain !== null && !(await this.#names.hearsOfDomain(asked.domain, accountId))) {
        this.#usage.abandoned(asked.tunnelId, accountId);
        return new Fault('NAMES_AWAY');
      }
    } catch {
      const refusal = this.#refusalWhileAway(asked, accountId);
      if (refusal !== null) {
        // The platform may have admitted the tunnel and the response was lost, so the end of the tunnel is reported.
        this.#usage.abandoned(asked.tunnelId, accountId);
        return refusal;
      }
    }
    this.#tunnels.add(asked.tunnelId, accountId);
    return null;
  }

  /**
   * Decides about a tunnel while the platform is unreachable, by the last known state and the edge's count of tunnels. Returns null if
   * admitted.
   */
  #refusalWhileAway(asked: TunnelAdmissionRequest, accountId: string): Fault | null {
    const { keyId, customSubdomain } = asked;
    const key = this.#keys.byKeyId(keyId);
    if (key === undefined || this.#closed.has(accountId)) return new Fault('AUTH_BACKEND_AWAY');
    const { plan, tunnel_limit: limit, allow_custom_subdomains: mayChoose }: AccountRights = key.account;
    if (customSubdomain && !mayChoose) return new Fault('TUNNEL_CUSTOM_SUBDOMAIN', { plan });
    if (!key.unlimited && limit !== null && this.#tunnels.countOf(accountId) >= limit) {
      return new Fault('TUNNEL_PLAN_LIMIT', { limit });
    }
    return this.#names.refusalWhileAway(asked);
  }

  admissionEnded(tunnelId: string): void {
    this.#names.admissionEnded(tunnelId);
    const accountId = this.#tunnels.pendingAccountOf(tunnelId);
    if (accountId === null) return;
    this.#tunnels.remove(tunnelId);
    this.#usage.abandoned(tunnelId, accountId);
  }

  tunnelOpened(event: TunnelOpened): void {
    const asked = this.#names.opened(event.tunnelId);
    const accountId = accountOf(event.owner);
    if (accountId === null) return;
    this.#tunnels.opened(event.tunnelId, accountId);
    this.#usage.opened(event, accountId, endpointFields(asked));
  }

  tunnelClosed(event: TunnelClosed): void {
    this.#names.closed(event.tunnelId);
    const accountId = accountOf(event.owner);
    if (accountId === null) return;
    this.#tunnels.remove(event.tunnelId);
    this.#usage.closed(event, accountId);
  }

  streamEnded(): void {
    this.#usage.streamEnded();
  }

  // ---- changes ----

  onRevoked(listener: (revocation: Revocation) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onDomainsChanged(listener: (keepers: DomainKeepers) => void): () => void {
    return this.#names.onDomainsChanged(listener);
  }

  #followAfter(knownBefore: number | null): (answer: HeartbeatAnswer) => void {
    return ({ last_change, public_url }) => {
      this.#platformUrl = public_url === undefined ? null : webAddressOf(public_url);
      const isForgetful = this.#changes.follow(last_change, knownBefore);
      if (isForgetful) void this.#askForAllKeys();
      else {
        this.#keys.heard();
        void this.#askAgain(this.#keys.takeUsedOnTrust());
      }
      this.#names.platformHeard(isForgetful);
      this.certificates?.platformHeard(isForgetful);
    };
  }

  #onChange(change: EdgeChange): void {
    switch (change.kind) {
      case 'key-revoked':
        this.#keys.forget(({ keyId }) => keyId === change.key_id);
        this.#revoke({ keyId: change.key_id, fault: new Fault('AUTH_TOKEN_REVOKED') });
        return;
      case 'account-closed':
        this.#keys.forget(({ account }) => account.account_id === change.account_id);
        this.#closed.add(change.account_id);
        this.#revoke({ accountId: change.account_id, fault: Fault.fromWire(change.code, change.message) });
        return;
      case 'tunnels-closed':
        this.#revoke({ tunnelIds: change.tunnel_ids, fault: Fault.fromWire(change.code, change.message) });
        return;
      case 'account-changed':
        this.#keys.accountChanged(change.account);
        this.#closed.remove(change.account.account_id);
        return;
      case 'name-changed':
      case 'domain-changed':
        this.#names.changed(change);
        return;
      case 'certificate-changed':
        this.certificates?.changed(change);
        return;
      case 'forget':
        void this.#askForAllKeys();
        this.#names.platformHeard(true);
        this.certificates?.platformHeard(true);
        return;
      case 'alive':
    }
  }

  /** Checks all keys again after the edge has missed changes. */
  #askForAllKeys(): Promise<void> {
    this.#keys.expireAll();
    return this.#askAgain(this.#keys.all());
  }

  /** Checks keys again. Sessions with a rejected key are closed. */
  async #askAgain(keys: readonly CachedKey[]): Promise<void> {
    const waiting = [...keys];
    const askOn = async (): Promise<void> => {
      for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
        const verdict = await this.#keys.check(key.tokenHash);
        if (!verdict.ok && !verdict.fault.retryable) this.#revoke({ keyId: key.keyId, fault: verdict.fault });
      }
    };
    await Promise.all(Array.from({ length: KEY_CHECKS_AT_ONCE }, askOn));
  }

  #revoke(revocation: Revocation): void {
    for (const listener of [...this.#listeners]) listener(revocation);
  }

  get reserved(): ReservedNames {
    return this.#names.reserved;
  }

  get journalQueue(): { readonly bytes: number; readonly timesFull: number } {
    return this.#usage.queue;
  }

  // ---- life ----

  async start(): Promise<void> {
    await this.#usage.start();
    await this.#names.start();
    await this.certificates?.start();
    this.#keys.restore(await this.#keyCopies.start());
    // The start does not wait for a response, because an edge can start while its platform is unreachable.
    this.#heartbeats.start();
  }

  ready(): void {
    void this.#heartbeats.beatAgain();
  }

  async stop(): Promise<void> {
    this.#heartbeats.stop();
    this.#changes.stop();
    await this.#usage.stop();
    await this.#names.stop();
    await this.certificates?.stop();
    await this.#keyCopies.stop();
  }
}

const certificatesOf = (
  { clock, logger, platform, certificates }: PlatformBackendOptions,
  link: PlatformLink,
): PlatformCertificates | undefined => {
  if (certificates === null) return undefined;
  const { copies: folder } = certificates;
  const copies = folder === null ? null : { folder, credential: platform.credential };
  return new PlatformCertificates({ clock, logger, link, copies });
};

const accountOf = (owner: Owner): string | null => (owner.kind === 'account' ? owner.accountId : null);
