// The door: options in, a connected client out.
import type { Client } from './client.ts';
import { type ConnectOptions, settle } from './options.ts';
import { StatusFeed } from './status.ts';
import { TunnelClient } from './tunnel-client.ts';

/** Settles when the edge has accepted the key and the first carrier is open; rejects with a Fault. */
export const connect = async (options: ConnectOptions): Promise<Client> => {
  const settings = settle(options);
  const feed = new StatusFeed();
  if (options.onStatus !== undefined) feed.on(options.onStatus);
  const client = new TunnelClient(settings, feed);
  const cancel = (): void => void client.close();
  options.signal?.addEventListener('abort', cancel, { once: true });
  if (options.signal?.aborted === true) cancel();
  try {
    await client.start();
  } finally {
    options.signal?.removeEventListener('abort', cancel);
  }
  return client;
};
