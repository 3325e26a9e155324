// What the SDK throws, in our words. The error itself is not kept as a cause: it may hold a customer's objects and secrets.
import { Fault } from '@tunnel/errors';
import { Stripe } from 'stripe';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';

type StripeError = InstanceType<typeof Stripe.errors.StripeError>;

/** null: it is no error of the processor, but one of ours. */
export const faultOfProcessor = (error: unknown): Fault | null => {
  if (error instanceof Fault) return error;
  if (!(error instanceof Stripe.errors.StripeError)) return null;
  const internal = describeError(error);
  if (isAway(error)) return processorAway(internal);
  return new Fault('BILLING_PROCESSOR_REFUSED', { reason: reasonOf(error) }, { internal });
};

export const processorAway = (internal: string): Fault =>
  new Fault('BILLING_PROCESSOR_AWAY', { seconds: PLATFORM_BOUNDS.PROCESSOR_RETRY_AFTER_SECS }, { internal });

/** Asking again later can help. 409: the same call is still under way there. */
const isAway = (error: StripeError): boolean => {
  const { statusCode } = error;
  if (error instanceof Stripe.errors.StripeConnectionError || statusCode === undefined) return true;
  return statusCode >= 500 || statusCode === 429 || statusCode === 409;
};

/** What concerns our key there is not told to customers. */
const reasonOf = (error: StripeError): string =>
  error.statusCode === 401 || error.statusCode === 403 ? 'it does not accept this platform' : firstLine(error.message);

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
