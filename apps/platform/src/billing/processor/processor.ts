// Interface of a payment processor. The only implementation uses the official SDK and talks to the real processor or to the simulator.
// Times are ms since the epoch, amounts are in cents, usage is in bytes.

export interface SubscriptionFacts {
  readonly id: string;
  readonly status: 'active' | 'past_due' | 'canceled';
  /** True if the subscription ends with the current period. For a canceled subscription: true if it ended with a period. */
  readonly cancelsAtPeriodEnd: boolean;
  readonly periodEnd: number | null;
  readonly startedAt: number;
}

/** A payment card as shown to people. */
export interface CardFacts {
  readonly brand: string;
  readonly last4: string;
}

export interface CustomerFacts {
  /** Address to which the processor sends invoices and receipts. */
  readonly email: string | null;
  readonly defaultPaymentMethod: string | null;
  readonly paymentMethods: readonly string[];
  /**
   * The charged card: of the default payment method, or else of the first. Null without a payment method, or if the method is not a card.
   */
  readonly card: CardFacts | null;
  /** The newest live subscription, or else the newest ended subscription. */
  readonly subscription: SubscriptionFacts | null;
  /**
   * The test clock of a past due customer, which may be moved by hand (in the simulator, or in the processor's test mode). Absent if the
   * customer follows real time.
   */
  readonly clock?: {
    readonly now: number;
    /** Time by the test clock since which an invoice is unpaid. Null if no invoice is open. */
    readonly unpaidSince: number | null;
  };
}

export interface ProcessorEvent {
  readonly id: string;
  readonly type: string;
  readonly customerId: string | null;
  readonly createdAt: number;
}

export interface CustomerOrder {
  readonly userId: string;
  readonly email: string;
  readonly name: string | null;
}

export interface SubscribeOrder {
  readonly customerId: string;
  readonly idempotencyKey: string;
  readonly userId: string;
}

export interface FinalMinimumOrder {
  readonly customerId: string;
  readonly subscriptionId: string;
  readonly periodEnd: number;
  readonly wanted: boolean;
  /**
   * True if the subscription has ended. The minimum then goes on the draft of the last invoice, without effect once the invoice is final.
   */
  readonly hasEnded: boolean;
}

export interface UsageEvent {
  /** Identifies the event. The processor counts an event once, however often it is sent. */
  readonly identifier: string;
  readonly customerId: string;
  readonly bytes: number;
  readonly at: number;
}

export interface UsageRange {
  readonly customerId: string;
  readonly from: number;
  readonly to: number;
}

export interface PortalOrder {
  readonly customerId: string;
  readonly returnUrl: string;
  /** Opens the portal only for entering a card, with an automatic redirect back afterwards. Absent for the full portal. */
  readonly flow?: 'payment_method' | undefined;
}

/**
 * A payment processor. Calls throw BILLING_PROCESSOR_AWAY if the processor is unreachable, too slow, or responds with 429 or 5xx, and
 * BILLING_PROCESSOR_REFUSED if the processor rejects the request.
 */
export interface Processor {
  /** Returns the id of the user's customer, created if necessary. Repeated calls return the same customer. */
  ensureCustomer(user: CustomerOrder): Promise<string>;
  createSetupIntent(customerId: string, idempotencyKey: string): Promise<{ readonly clientSecret: string }>;
  /** Reads a customer. Returns null if the customer is unknown to the processor or was deleted. */
  readCustomer(customerId: string): Promise<CustomerFacts | null>;
  /** Changes the address for future invoices and receipts. */
  setEmail(customerId: string, email: string): Promise<void>;
  /** Makes a payment method the customer's default. */
  usePaymentMethod(customerId: string, paymentMethodId: string): Promise<void>;
  /** Starts a subscription. A live subscription of the customer is returned unchanged. */
  subscribe(order: SubscribeOrder): Promise<SubscriptionFacts>;
  /** Cancels the scheduled end of a subscription. */
  keepSubscription(subscriptionId: string): Promise<SubscriptionFacts>;
  /** Ends all live subscriptions of the customer immediately, with a last invoice of the reported usage and of pending items. */
  endSubscriptions(customerId: string): Promise<void>;
  /**
   * Adds the monthly minimum to the last invoice of an ending subscription, which lacks the fixed price; or removes the minimum if not
   * wanted.
   */
  setFinalMinimum(order: FinalMinimumOrder): Promise<void>;
  reportUsage(event: UsageEvent): Promise<void>;
  /** Returns the reported usage with times from `from` (inclusive) to `to` (exclusive), extended to whole minutes. */
  meteredBytes(range: UsageRange): Promise<number>;
  openPortal(order: PortalOrder): Promise<string>;
  /** Returns at most 100 invoices in the processor's format, newest first. */
  invoices(customerId: string): Promise<readonly Record<string, unknown>[]>;
  /**
   * Verifies and parses a webhook event. The body must be exactly the received bytes. Throws WEBHOOK_SIGNATURE if the processor did not
   * sign the bytes, or signed them too long ago.
   */
  readEvent(rawBody: Uint8Array | string, signature: string): Promise<ProcessorEvent>;
}
