// The description of a tunnel option: protocols, schema, reload behavior, command-line flag and documentation. The option's key is in the
// table of all options.
import type { TunnelProtocol } from '@tunnel/rules/tunnels';
import type * as z from 'zod';

export type Proto = TunnelProtocol;

/** Commands that publish or connect to a service. `files` opens an http tunnel. */
export type TunnelCommand = 'http' | 'files' | 'tcp' | 'tls' | 'udp' | 'p2p publish' | 'p2p connect';

/** Headings under which `--help` of a command lists its flags, in display order. */
export type FlagHeading = 'address' | 'service' | 'access' | 'balancing' | 'health' | 'output';

/** Conversion from the text after a flag to the option's value. */
export type FlagValue =
  | { readonly kind: 'text' }
  | { readonly kind: 'path' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'whole'; readonly from: number; readonly to: number }
  | { readonly kind: 'seconds'; readonly to: number }
  /** Flag value `tcp` or `http:/path`: sets `type` and `path` of the health check. */
  | { readonly kind: 'probe' }
  /** Flag value `[host:]port`: sets `listen_host` and `listen_port`. */
  | { readonly kind: 'listen' }
  /** Flag value `name=port` of a repeatable flag: adds an entry to a table. */
  | { readonly kind: 'named ports' }
  /** A flag without text, which sets a fixed value. */
  | { readonly kind: 'is'; readonly value: boolean | string };

export interface Flag {
  /** Long name of the flag, without `--`. Default: the option's key with hyphens. */
  readonly long?: string;
  /** Placeholder for the flag's value in the help, such as `<name>`. Absent for a flag without a value. */
  readonly shown?: string;
  readonly value: FlagValue;
  /** Values that a flag accepts for a command that supports only some of the choices. */
  readonly choicesFor?: Readonly<Partial<Record<TunnelCommand, readonly string[]>>>;
  readonly help: string;
  /** Help text of the flag for a command that describes the flag differently. */
  readonly helpFor?: Readonly<Partial<Record<TunnelCommand, string>>>;
  readonly heading: FlagHeading;
  /** Lists the flag among the common flags, about a dozen, at the top of `--help`. */
  readonly isCommon?: true;
  /** Shows the option's default in the flag's help. */
  readonly showsDefault?: true;
  /** Commands with this flag. Default: every command for one of the option's protocols. */
  readonly commands?: readonly TunnelCommand[];
}

/** Texts for the option's row in docs/configuration.md. The default value comes from the option's schema. */
export interface OptionDocs {
  /** Text in the column "Type" of docs/configuration.md. */
  readonly type: string;
  /** Text in the column "Meaning" of docs/configuration.md. */
  readonly meaning: string;
  /**
   * Shows `required` in the column "Default" of docs/configuration.md. The schema cannot know this, because another key can replace the
   * option.
   */
  readonly isRequired?: true;
}

/** A key of a table inside an option, such as `health_check.path`. */
export interface OptionField {
  readonly docs: OptionDocs;
  readonly flag?: Flag;
}

/**
 * Effect of a changed value on a running tunnel. `same`: no effect. `retarget`: the client sends visitors to another local service.
 * `update`: the edge applies the value to the open tunnel, and connections stay. `reopen`: the tunnel is closed and opened again.
 */
export type ReloadClass = 'same' | 'retarget' | 'update' | 'reopen';

export interface Option {
  readonly protos: readonly Proto[];
  /**
   * Makes the schema of the option's values, which is optional or has a default. A client that starts with flags checks no values by schema,
   * and making all schemas takes milliseconds.
   */
  readonly schema: () => z.ZodType;
  readonly reload: ReloadClass;
  readonly flag?: Flag;
  readonly docs?: OptionDocs;
  /** Keys of a nested table, each with a row of the docs. Replaces `docs`. */
  readonly fields?: Readonly<Record<string, OptionField>>;
  /** Marks a secret. The value never leaves the client; the wire carries the SHA-256 of the value. */
  readonly isSecret?: true;
  /** The option that takes its value from the file or variable named by this option. Only config.yml and command lines have such keys. */
  readonly sourceOf?: string;
}

export const HTTP = ['http', 'https'] as const satisfies readonly Proto[];
export const NAMED = [...HTTP, 'tls'] as const satisfies readonly Proto[];
export const GROUPED = [...NAMED, 'tcp'] as const satisfies readonly Proto[];
/** Protocols with traffic forwarded by the edge as plain bytes or datagrams, without parsing. */
export const CARRIED = ['tcp', 'tls', 'udp'] as const satisfies readonly Proto[];
export const GUARDED = [...HTTP, ...CARRIED] as const satisfies readonly Proto[];
export const PORTED = ['tcp', 'udp'] as const satisfies readonly Proto[];
export const EVERY = ['http', 'https', 'tcp', 'tls', 'udp', 'p2p'] as const satisfies readonly Proto[];

/** Commands that publish a service on a host and port. */
export const WITH_HOST = ['http', 'tcp', 'tls', 'udp', 'p2p publish'] as const satisfies readonly TunnelCommand[];
/** Commands that publish a service on a port or a Unix socket. The client can check the health of both. */
export const WITH_SOCKET = ['http', 'tcp', 'tls'] as const satisfies readonly TunnelCommand[];

/** Checks the type of a table of options and keeps the exact types of its rows. Each schema is made at most once. */
export const rows = <const R extends Readonly<Record<string, Option>>>(table: R): R =>
  Object.fromEntries(Object.entries(table).map(([key, row]) => [key, { ...row, schema: madeOnce(row.schema) }])) as R;

const madeOnce = (make: () => z.ZodType): (() => z.ZodType) => {
  let made: z.ZodType | undefined;
  return () => {
    made ??= make();
    return made;
  };
};
