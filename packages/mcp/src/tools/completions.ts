// Completions for arguments while a user types: tunnel ids and error codes.
import { ERROR_CODES } from '@tunnel/errors';
import type { Offer } from './offer.ts';
import type { ToolCall, ToolHost } from './tool-host.ts';
import { MCP_TOOL_LIMITS } from './tool-limits.ts';

/** Maximum values in one completion result, as defined by the MCP protocol. */
const TOOL_COMPLETIONS_MAX = 100;

const { TOOL_TUNNELS_MAX } = MCP_TOOL_LIMITS;

type Reference =
  | { readonly type: 'ref/prompt'; readonly name: string }
  | { readonly type: 'ref/resource'; readonly uri: string };

export interface Completion {
  readonly [field: string]: unknown;
  readonly values: string[];
  readonly total: number;
  readonly hasMore: boolean;
}

const completionOf = (words: readonly string[]): Completion => ({
  values: words.slice(0, TOOL_COMPLETIONS_MAX),
  total: words.length,
  hasMore: words.length > TOOL_COMPLETIONS_MAX,
});

/** Whether the prompt or resource to complete exists and has the argument. */
const takes = (offer: Offer, ref: Reference, argument: string): boolean => {
  if (ref.type === 'ref/prompt') {
    const prompt = offer.prompts().find(({ name }) => name === ref.name);
    return prompt?.arguments.some(({ name }) => name === argument) ?? false;
  }
  const kind = offer.resources().find(({ address }) => address === ref.uri);
  return kind?.address.includes(`{${argument}}`) ?? false;
};

export const complete = async (
  offer: Offer,
  host: ToolHost,
  ref: Reference,
  argument: { readonly name: string; readonly value: string },
  call: ToolCall,
): Promise<Completion> => {
  if (!takes(offer, ref, argument.name)) return completionOf([]);
  const { name, value } = argument;
  if (name === 'code') return completionOf(ERROR_CODES.filter((code) => code.startsWith(value.toUpperCase())));
  // Tunnel ids come from list_tunnels, so a caller without permission for list_tunnels gets no ids.
  if (name !== 'tunnel' || !offer.has('list_tunnels')) return completionOf([]);
  const { tunnels } = await host.listTunnels({ state: 'active', limit: TOOL_TUNNELS_MAX }, call);
  // The values are ids, which every host accepts. The typed text can also match the tunnel's name, which users know better.
  const fitting = tunnels.filter(({ tunnel_id, name: called = '' }) =>
    [tunnel_id, called].some((word) => word.startsWith(value)),
  );
  return completionOf(fitting.map(({ tunnel_id }) => tunnel_id));
};
