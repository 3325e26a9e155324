// Name ownership on the platform’s side of the link, in memory: applies the rules of name ownership to rows. Used by tests only.
import type { ReservedName, WantedNameEndpoint } from '@tunnel/contract';
import {
  FREE_NAME,
  type NameEvent,
  type NameOwnership,
  type NameRefusal,
  owningLabel,
  refusalOfName,
  transitionName,
} from '@tunnel/rules/names';

type Kind = WantedNameEndpoint['kind'];

const DAY_MS = 24 * 3_600_000;
const GRACE_MS = 7 * DAY_MS;

export class ScriptedNames {
  readonly #rows = new Map<string, NameOwnership>();
  /** Accounts of reserved wildcards, by wildcard. A wildcard needs a name of the same account. */
  readonly #wildcards = new Map<string, string>();
  readonly #tunnels = new Map<string, string>();
  now = 0;

  /** Claims the requested name for a tunnel. Returns the reason of a refusal, or null if the tunnel is admitted. */
  open(tunnelId: string, accountId: string, endpoint: WantedNameEndpoint): NameRefusal | null {
    if (endpoint.label === null) return null;
    const key = keyOf(endpoint.kind, endpoint.label);
    const { group_key_hash: groupKeyHash, joins_group: joinsGroup } = endpoint;
    const effects = this.#feed(key, { kind: 'tunnel-opened', by: accountId, groupKeyHash, joinsGroup });
    for (const effect of effects) if (effect.kind === 'refused') return effect.reason;
    this.#tunnels.set(tunnelId, key);
    return null;
  }

  knows(tunnelId: string): boolean {
    return this.#tunnels.has(tunnelId);
  }

  ended(tunnelId: string, abandoned: boolean): void {
    const key = this.#tunnels.get(tunnelId);
    this.#tunnels.delete(tunnelId);
    if (key !== undefined) this.#feed(key, { kind: 'tunnel-ended', abandoned });
  }

  isFree(kind: Kind, label: string, groupKeyHash: string | null): boolean {
    const key = keyOf(kind, label);
    return refusalOfName(this.#rows.get(key) ?? FREE_NAME, { by: null, groupKeyHash }, this.now, rulesOf(key)) === null;
  }

  reserve(accountId: string, kind: Kind, label: string): void {
    if (label.startsWith('*.')) this.#wildcards.set(label, accountId);
    else this.#feed(keyOf(kind, label), { kind: 'reserve', by: accountId, servedByOther: false });
  }

  release(accountId: string, kind: Kind, label: string): void {
    this.#feed(keyOf(kind, label), { kind: 'release', by: accountId });
  }

  *reserved(): Generator<ReservedName> {
    for (const [key, row] of this.#rows) {
      const [kind, label] = key.split(' ') as [ReservedName['kind'], string];
      if (row.kind !== 'reserved') continue;
      yield { kind, label, account_id: row.ownerId, group_key_hash: row.groupKeyHash };
    }
    for (const [label, account_id] of this.#wildcards) {
      yield { kind: 'subdomain', label, account_id, group_key_hash: null };
    }
  }

  #feed(key: string, event: NameEvent) {
    const [row, effects] = transitionName(this.#rows.get(key) ?? FREE_NAME, event, this.now, rulesOf(key));
    if (row.kind === 'free') this.#rows.delete(key);
    else this.#rows.set(key, row);
    return effects;
  }
}

const keyOf = (kind: Kind, label: string): string => `${kind} ${kind === 'subdomain' ? owningLabel(label) : label}`;

const rulesOf = (key: string) => ({ holdMs: /^(subdomain|p2p) /.test(key) ? 30 * DAY_MS : 0, graceMs: GRACE_MS });
