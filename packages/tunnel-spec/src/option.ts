// The row of an option. The table of all options has its key; the row has everything else about it.
import type { TunnelProtocol } from '@tunnel/rules/tunnels';
import type * as z from 'zod';

export type Proto = TunnelProtocol;

/** The commands that publish or reach a service. `files` makes an http tunnel. */
export type TunnelCommand = 'http' | 'files' | 'tcp' | 'tls' | 'udp' | 'p2p publish' | 'p2p connect';

/** The headings of a command's help, in their order. */
export type FlagHeading = 'address' | 'service' | 'access' | 'balancing' | 'health' | 'output';

/** How the text after a flag becomes the value of its option. */
export type FlagValue =
  | { readonly kind: 'text' }
  | { readonly kind: 'path' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'whole'; readonly from: number; readonly to: number }
  | { readonly kind: 'seconds'; readonly to: number }
  /** `tcp` or `http:/path`: sets `type` and `path` of the health check. */
  | { readonly kind: 'probe' }
  /** `[host:]port`: sets `listen_host` and `listen_port`. */
  | { readonly kind: 'listen' }
  /** `name=port`, repeatable: adds a name to a table. */
  | { readonly kind: 'named ports' }
  /** The flag has no text and stands for this value. */
  | { readonly kind: 'is'; readonly value: boolean | string };

export interface Flag {
  /** The long name without `--`. Default: the key with hyphens. */
  readonly long?: string;
  /** The placeholder, such as `<name>`. Absent for a flag without a value. */
  readonly shown?: string;
  readonly value: FlagValue;
  /** Choices of a command with fewer of them. */
  readonly choicesFor?: Readonly<Partial<Record<TunnelCommand, readonly string[]>>>;
  readonly help: string;
  /** Help of a command with another text. */
  readonly helpFor?: Readonly<Partial<Record<TunnelCommand, string>>>;
  readonly heading: FlagHeading;
  /** Among the first dozen of `--help`. */
  readonly isCommon?: true;
  /** Shows the option's default in the help. */
  readonly showsDefault?: true;
  /** The commands with this flag. Default: every command for a protocol of the option. */
  readonly commands?: readonly TunnelCommand[];
}

/** A row of docs/configuration.md. The default comes from the schema. */
export interface OptionDocs {
  /** The column "Type". */
  readonly type: string;
  /** The column "Meaning". */
  readonly meaning: string;
  /** The column "Default" is `required`. The schema cannot know this, because another key can replace the option. */
  readonly isRequired?: true;
}

/** A key of a nested table, such as `health_check.path`. */
export interface OptionField {
  readonly docs: OptionDocs;
  readonly flag?: Flag;
}

/**
 * What a changed value does to a tunnel that runs. `same`: nothing. `retarget`: the client takes visitors elsewhere. `update`: the edge takes the value for the
 * tunnel that it has; connections stay. `reopen`: the tunnel is closed and opened again.
 */
export type ReloadClass = 'same' | 'retarget' | 'update' | 'reopen';

export interface Option {
  readonly protos: readonly Proto[];
  /** The kind of its values, optional or with a default. */
  readonly schema: z.ZodType;
  readonly reload: ReloadClass;
  readonly flag?: Flag;
  readonly docs?: OptionDocs;
  /** Instead of `docs`: the keys of a nested table, each with a row of the docs. */
  readonly fields?: Readonly<Record<string, OptionField>>;
  /** The value never leaves the client. The wire carries the SHA-256 of the value. */
  readonly isSecret?: true;
  /** Names a file or a variable that holds the value of another option. Only config.yml and command lines have such keys. */
  readonly sourceOf?: string;
}

export const HTTP = ['http', 'https'] as const satisfies readonly Proto[];
export const NAMED = [...HTTP, 'tls'] as const satisfies readonly Proto[];
export const GROUPED = [...NAMED, 'tcp'] as const satisfies readonly Proto[];
/** The edge carries bytes and datagrams of these protocols unread. */
export const CARRIED = ['tcp', 'tls', 'udp'] as const satisfies readonly Proto[];
export const GUARDED = [...HTTP, ...CARRIED] as const satisfies readonly Proto[];
export const PORTED = ['tcp', 'udp'] as const satisfies readonly Proto[];
export const EVERY = ['http', 'https', 'tcp', 'tls', 'udp', 'p2p'] as const satisfies readonly Proto[];

/** The commands that lead to a host and port. */
export const WITH_HOST = ['http', 'tcp', 'tls', 'udp', 'p2p publish'] as const satisfies readonly TunnelCommand[];
/** The commands for a service or its socket. The client can check the health of both. */
export const WITH_SOCKET = ['http', 'tcp', 'tls'] as const satisfies readonly TunnelCommand[];

/** Checks rows and keeps their exact types. */
export const rows = <const R extends Readonly<Record<string, Option>>>(table: R): R => table;
