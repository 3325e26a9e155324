// Client of the payment processor: wraps the SDK, limits the time of calls, and translates errors into faults.
import { Fault } from '@tunnel/errors';
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import { TimeoutError, withTimeout } from '../../timeout.ts';

/** Default time limit of a call to the payment processor, including retries. */
const PROCESSOR_TIMEOUT_MS = 10_000;
/** Maximum number of retries of a repeatable call to the payment processor. */
const PROCESSOR_RETRIES = 2;
/** Retry time sent to a caller while the payment processor is unavailable. */
const PROCESSOR_RETRY_AFTER_SECS = 5;

export interface ProcessorClientOptions {
  readonly secretKey: Secret;
  readonly apiUrl: () => string;
  readonly logger: Logger;
  /** Time limit of a call, including retries. Default: PROCESSOR_TIMEOUT_MS. */
  readonly timeoutMs?: number;
}

export class ProcessorClient {
  readonly #options: ProcessorClientOptions;
  readonly #timeoutMs: number;
  #client: { readonly url: string; readonly stripe: Stripe } | undefined;
  #isAway = false;

  constructor(options: ProcessorClientOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? PROCESSOR_TIMEOUT_MS;
  }

  /** Calls the processor. Throws a fault for every error of the processor; internal errors are thrown unchanged. */
  async call<T>(name: string, work: (stripe: Stripe) => Promise<T>): Promise<T> {
    try {
      // The SDK's timeout applies to every retry separately, so another time limit covers the retries together.
      const result = await withTimeout(systemClock, work(this.#stripe()), this.#timeoutMs);
      this.#heard();
      return result;
    } catch (error) {
      const fault = error instanceof TimeoutError ? processorAway(error.message) : faultOfProcessor(error);
      if (fault === null) throw error;
      if (fault.code === 'BILLING_PROCESSOR_AWAY') this.#missed(name, fault.internal);
      else {
        this.#heard();
        this.#options.logger.warn({ call: name, reason: fault.internal }, 'the payment processor rejected a request');
      }
      throw fault;
    }
  }

  /** Returns the SDK client for the current URL. The simulator may have a different port after a restart. */
  #stripe(): Stripe {
    const url = this.#options.apiUrl();
    if (this.#client?.url !== url)
      this.#client = { url, stripe: clientOf(url, this.#options.secretKey, this.#timeoutMs) };
    return this.#client.stripe;
  }

  /** Logs an outage once, because every call during the outage fails in the same way. */
  #missed(call: string, reason: string | undefined): void {
    if (!this.#isAway) this.#options.logger.warn({ call, reason }, 'cannot reach the payment processor');
    this.#isAway = true;
  }

  #heard(): void {
    if (this.#isAway) this.#options.logger.info({}, 'the payment processor is available again');
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
    maxNetworkRetries: PROCESSOR_RETRIES,
    telemetry: false,
    httpClient: strictHttpClient(),
  });
};

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;

/**
 * Creates the SDK's HTTP client with a strict check of responses. The SDK accepts any JSON without an error as the requested object,
 * whatever its status. A response from a proxy would then count as accepted usage, or as an empty secret. The check passes only objects
 * and errors of the processor.
 */
const strictHttpClient = (): HttpClient => {
  const client = Stripe.createNodeHttpClient();
  const makeRequest = client.makeRequest.bind(client);
  client.makeRequest = async (...request) => {
    const response = await makeRequest(...request);
    const read = response.toJSON.bind(response);
    response.toJSON = async () => checked(response.getStatusCode(), await read());
    return response;
  };
  return client;
};

/** Returns the body if it is an error or an object of the processor. Every object of the processor has a type in the member `object`. */
const checked = (status: number, body: unknown): unknown => {
  const told = typeof body === 'object' && body !== null ? (body as { object?: unknown; error?: unknown }) : {};
  const isError = typeof told.error === 'object' && told.error !== null;
  if (isError || (status < 300 && typeof told.object === 'string')) return body;
  throw new Error(`unexpected response with status ${status}`);
};

type StripeError = InstanceType<typeof Stripe.errors.StripeError>;

/**
 * Translates an SDK error into a fault. The error is not kept as the cause, because it may contain a customer's objects and secrets.
 * Returns null for an internal error that does not come from the processor.
 */
const faultOfProcessor = (error: unknown): Fault | null => {
  if (error instanceof Fault) return error;
  if (!(error instanceof Stripe.errors.StripeError)) return null;
  const internal = describeError(error);
  if (isAway(error)) return processorAway(internal);
  return new Fault('BILLING_PROCESSOR_REFUSED', { reason: reasonOf(error) }, { internal });
};

export const processorAway = (internal: string): Fault =>
  new Fault('BILLING_PROCESSOR_AWAY', { seconds: PROCESSOR_RETRY_AFTER_SECS }, { internal });

/** Returns true if a later retry can help. Status 409 means that the same call is still running at the processor. */
const isAway = (error: StripeError): boolean => {
  const { statusCode } = error;
  if (error instanceof Stripe.errors.StripeConnectionError || statusCode === undefined) return true;
  return statusCode >= 500 || statusCode === 429 || statusCode === 409;
};

/** Returns the reason shown to customers. Problems with the platform's credentials are not shown in detail. */
const reasonOf = (error: StripeError): string =>
  error.statusCode === 401 || error.statusCode === 403
    ? 'the payment processor rejected the credentials of this platform'
    : firstLine(error.message);

const describeError = ({ type, code, statusCode, requestId, message, detail }: StripeError) => {
  const reason = detail instanceof Error && detail.message !== '' ? detail.message : firstLine(message);
  const facts = [type, code, statusCode, requestId].filter((fact) => fact !== undefined).join(' ');
  return `${reason} (${facts})`;
};

const firstLine = (text: string): string => text.split('\n')[0]?.trim() ?? '';

export const isMissing = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing';

export const isRefused = (error: unknown): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> =>
  error instanceof Stripe.errors.StripeInvalidRequestError;

const CREATE_ATTEMPTS_MAX = 10;

/**
 * Creates an object once, with an idempotency key. For a day, the processor answers a known key with the original object, which may have
 * been deleted since. In that case, a follow-up key is derived from the deleted object's id, so that concurrent callers arrive at the
 * same key.
 */
export const createOnce = async <T extends { readonly id: string }>(
  key: string,
  create: (idempotencyKey: string) => Promise<Stripe.Response<T>>,
  isPresent: (made: T) => Promise<boolean>,
): Promise<T> => {
  let idempotencyKey = key;
  for (let attempt = 0; attempt < CREATE_ATTEMPTS_MAX; attempt += 1) {
    const made = await create(idempotencyKey);
    // An object created just now is not checked: if it were not visible yet, a second object would be created.
    const isOld = made.lastResponse.headers['idempotent-replayed'] === 'true';
    if (!isOld || (await isPresent(made))) return made;
    idempotencyKey = `${key}:after:${made.id}`;
  }
  throw new Error(`${key} was created and deleted too often`);
};
