// The one error class. Its message is public; `internal` and `cause` are for logs only.
import { CATALOGUE, type CatalogueEntry, type ErrorCode, isErrorCode } from './catalogue.ts';

export type FaultValues = Readonly<Record<string, string | number | boolean>>;

export interface FaultOptions {
  /** Said to logs, never to a person outside. */
  readonly internal?: string;
  readonly cause?: unknown;
  /** Replaces the catalogue's text: an error that another process already put into words. */
  readonly message?: string;
}

/** `util.inspect.custom`, by the name under which every runtime finds it. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

export class Fault extends Error {
  readonly code: ErrorCode;
  readonly values: FaultValues;
  /** What the person can do next, with the same values filled in. A field, so that it is there when nobody catches the fault. */
  readonly next: string;
  /** Absent where there is nothing to say, for the same reason. */
  declare readonly internal?: string;

  constructor(code: ErrorCode, values: FaultValues = {}, options: FaultOptions = {}) {
    super(
      options.message ?? fillText(CATALOGUE[code].text, values),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'Fault';
    this.code = code;
    this.values = values;
    this.next = fillText(CATALOGUE[code].next, values);
    if (options.internal !== undefined) this.internal = options.internal;
  }

  get entry(): CatalogueEntry {
    return CATALOGUE[this.code];
  }

  get status(): number {
    return this.entry.status;
  }

  get retryable(): boolean {
    return this.entry.retryable;
  }

  /** What is public of it. */
  toJSON(): object {
    const { code, message, next, retryable } = this;
    return { code, message, next, retryable };
  }

  /** For whoever prints it, in a program around the client above all: what to do stands below what happened; what is for logs does not. */
  [INSPECT](_depth: number, options: unknown, inspect: (value: unknown, options: unknown) => string): string {
    const trace = (this.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
    const cause = this.cause === undefined ? [] : [`  [cause]: ${inspect(this.cause, options)}`];
    const next = this.next === '' ? [] : [`  ${this.next}`];
    return [`Fault [${this.code}]: ${this.message}`, ...next, ...trace, ...cause].join('\n');
  }

  /** An error another process reported: its code when we know it, its words in any case. */
  static fromWire(code: string, message: string, values: FaultValues = {}): Fault {
    if (isErrorCode(code)) return new Fault(code, values, { message });
    return new Fault('INTERNAL', values, { message, internal: `from the wire: ${code}` });
  }

  /** Anything caught: a fault stays itself, everything else becomes INTERNAL with the cause kept for the log. */
  static from(error: unknown): Fault {
    if (error instanceof Fault) return error;
    return new Fault(
      'INTERNAL',
      {},
      { cause: error, internal: error instanceof Error ? error.message : String(error) },
    );
  }
}

const fillText = (text: string, values: FaultValues): string =>
  text.replace(/\{(\w+)\}/g, (whole, key: string) => (Object.hasOwn(values, key) ? String(values[key]) : whole));
