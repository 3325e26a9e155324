// Remembers that a user left to add a card at the payment processor in order to subscribe, so that the dashboard can finish the
// subscription afterwards. Stored in this tab and never in the URL, because a link must not be able to start a subscription.

const STORED_AS = 'tunnel.subscribing';

/** Lifetime of the stored intent. Longer than anyone needs to enter a card. */
const LASTS_MS = 30 * 60_000;

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export const rememberSubscribing = (userId: string, now: number, store: () => Store = tabStore): void => {
  try {
    store().setItem(STORED_AS, JSON.stringify([userId, now]));
  } catch {
    // Storage is disabled in this browser, so the user has to select Subscribe again.
  }
};

/**
 * Returns whether the user intended to subscribe, and removes the stored intent. Intents of other accounts and expired intents do not
 * count.
 */
export const takeSubscribing = (userId: string, now: number, store: () => Store = tabStore): boolean => {
  try {
    const kept: unknown = JSON.parse(store().getItem(STORED_AS) ?? 'null');
    store().removeItem(STORED_AS);
    if (!Array.isArray(kept)) return false;
    const [owner, at] = kept as unknown[];
    return owner === userId && typeof at === 'number' && now >= at && now - at < LASTS_MS;
  } catch {
    return false;
  }
};

const tabStore = (): Store => sessionStorage;
