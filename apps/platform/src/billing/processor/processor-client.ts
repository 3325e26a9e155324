// The way to the processor: one SDK client, a time for each call, and errors in our words.
import { Fault } from '@tunnel/errors';
import { type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import { TimeoutError, withTimeout } from '../../timeout.ts';

/** Time for one call to the payment processor, including its retries. */
const PROCESSOR_TIMEOUT_MS = 10_000;
/** Of a call to the payment processor that may be repeated. */
const PROCESSOR_RETRIES = 2;
/** What a caller is told to wait while the processor is away. */
const PROCESSOR_RETRY_AFTER_SECS = 5;

export interface ProcessorClientOptions {
  readonly secretKey: Secret;
  readonly apiUrl: () => string;
  readonly logger: Logger;
  /** PROCESSOR_TIMEOUT_MS unless told. */
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

  /** Throws faults only, but for errors of our own. */
  async call<T>(name: string, work: (stripe: Stripe) => Promise<T>): Promise<T> {
    try {
      // The SDK counts its time anew for each of its own retries; this is for all of them.
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

  /** The simulator's port may be another one after a restart. */
  #stripe(): Stripe {
    const url = this.#options.apiUrl();
    if (this.#client?.url !== url)
      this.#client = { url, stripe: clientOf(url, this.#options.secretKey, this.#timeoutMs) };
    return this.#client.stripe;
  }

  /** Told once: every call would say the same. */
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
 * The SDK takes any JSON without an error in it for what it asked for, whatever its status. What somebody on the way says
 * would then be a report that was taken, or an empty secret: so only objects of the processor pass, and its errors.
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

/** Everything that the processor gives says what it is. */
const checked = (status: number, body: unknown): unknown => {
  const told = typeof body === 'object' && body !== null ? (body as { object?: unknown; error?: unknown }) : {};
  const isError = typeof told.error === 'object' && told.error !== null;
  if (isError || (status < 300 && typeof told.object === 'string')) return body;
  throw new Error(`unexpected response with status ${status}`);
};

type StripeError = InstanceType<typeof Stripe.errors.StripeError>;

/**
 * What the SDK throws, in our words. The error itself is not kept as a cause: it may hold a customer's objects and secrets.
 * null: it is no error of the processor, but one of ours.
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

/** Asking again later can help. 409: the same call is still under way there. */
const isAway = (error: StripeError): boolean => {
  const { statusCode } = error;
  if (error instanceof Stripe.errors.StripeConnectionError || statusCode === undefined) return true;
  return statusCode >= 500 || statusCode === 429 || statusCode === 409;
};

/** What concerns our key there is not told to customers. */
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
 * Making something once by an idempotency key. For a day the processor answers a key that it knows with the object of then,
 * which may have been deleted since: then the key is followed by another one, which everybody who comes this way finds too.
 */
export const createOnce = async <T extends { readonly id: string }>(
  key: string,
  create: (idempotencyKey: string) => Promise<Stripe.Response<T>>,
  isPresent: (made: T) => Promise<boolean>,
): Promise<T> => {
  let idempotencyKey = key;
  for (let attempt = 0; attempt < CREATE_ATTEMPTS_MAX; attempt += 1) {
    const made = await create(idempotencyKey);
    // One that was made just now is not looked for: not to see it yet would make a second one.
    const isOld = made.lastResponse.headers['idempotent-replayed'] === 'true';
    if (!isOld || (await isPresent(made))) return made;
    idempotencyKey = `${key}:after:${made.id}`;
  }
  throw new Error(`${key} was created and deleted too often`);
};
