// Ids of tunnels are made by the edges, of letters, digits and signs of ASCII. Anything else is an id of nothing, and never
// reaches a query, which would refuse some of it.

const TUNNEL_ID = /^[!-~]{1,100}$/;

export const isTunnelId = (text: string): boolean => TUNNEL_ID.test(text);
