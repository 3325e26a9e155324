// The way to the processor: one SDK client, a time for each call, and errors in our words.
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { OutOfTime, within } from '../../within.ts';
import { faultOfProcessor, processorAway } from './processor-fault.ts';
import { strictHttpClient } from './strict-http-client.ts';

export interface DeskOptions {
  readonly secretKey: Secret;
  readonly apiUrl: () => string;
  readonly logger: Logger;
  /** PROCESSOR_TIMEOUT_MS unless told. */
  readonly timeoutMs?: number;
}

export class ProcessorDesk {
  readonly #options: DeskOptions;
  readonly #timeoutMs: number;
  #client: { readonly url: string; readonly stripe: Stripe } | undefined;
  #isAway = false;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? PLATFORM_BOUNDS.PROCESSOR_TIMEOUT_MS;
  }

  /** Throws faults only, but for errors of our own. */
  async call<T>(name: string, work: (stripe: Stripe) => Promise<T>): Promise<T> {
    try {
      // The SDK counts its time anew for each of its own retries; this is for all of them.
      const result = await within(systemClock, work(this.#stripe()), this.#timeoutMs);
      this.#heard();
      return result;
    } catch (error) {
      const fault = error instanceof OutOfTime ? processorAway(error.message) : faultOfProcessor(error);
      if (fault === null) throw error;
      if (fault.code === 'BILLING_PROCESSOR_AWAY') this.#missed(name, fault.internal);
      else {
        this.#heard();
        this.#options.logger.warn({ call: name, reason: fault.internal }, 'the payment processor refused a call');
      }
      throw fault;
    }
  }

  /** The simulator's port may be another one after a restart. */
  #stripe(): Stripe {
    const url = this.#options.apiUrl();
    if (this.#client?.url !== url)
      this.#client = { url, stripe: clientOf(url, this.#options.secretKey, this.#timeoutMs) };
    return this.#client.stripe;
  }

  /** Told once: every call would say the same. */
  #missed(call: string, reason: string | undefined): void {
    if (!this.#isAway) this.#options.logger.warn({ call, reason }, 'the payment processor cannot be reached');
    this.#isAway = true;
  }

  #heard(): void {
    if (this.#isAway) this.#options.logger.info({}, 'the payment processor is back');
    this.#isAway = false;
  }
}

const clientOf = (url: string, secretKey: Secret, timeout: number): Stripe => {
  const { protocol, hostname, port } = new URL(url);
  const plain = protocol === 'http:';
  const usualPort = plain ? 80 : 443;
  return new Stripe(secretKey.reveal(), {
    protocol: plain ? 'http' : 'https',
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? usualPort : Number(port),
    apiVersion: Stripe.API_VERSION,
    timeout,
    maxNetworkRetries: PLATFORM_BOUNDS.PROCESSOR_RETRIES,
    telemetry: false,
    httpClient: strictHttpClient(),
  });
};
