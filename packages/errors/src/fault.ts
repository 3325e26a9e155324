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

export class Fault extends Error {
  readonly code: ErrorCode;
  readonly values: FaultValues;
  readonly internal: string | undefined;

  constructor(code: ErrorCode, values: FaultValues = {}, options: FaultOptions = {}) {
    super(
      options.message ?? fillText(CATALOGUE[code].text, values),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'Fault';
    this.code = code;
    this.values = values;
    this.internal = options.internal;
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

  /** What the person can do next, with the same values filled in. */
  get next(): string {
    return fillText(this.entry.next, this.values);
  }

  /** An error another process reported: its code when we know it, its words in any case. */
  static fromWire(code: string, message: string, values: FaultValues = {}): Fault {
    return new Fault(isErrorCode(code) ? code : 'INTERNAL', values, { message, internal: `from the wire: ${code}` });
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
