// A path without a hop, which shows what load and origin can do at most.

export const direct = {
  name: 'direct',
  async start({ ground }) {
    return { address: { host: '127.0.0.1', port: ground.originPort }, processes: {} };
  },
};
