// No hop at all: what load and origin can do by themselves.

export const direct = {
  name: 'direct',
  async start({ ground }) {
    return { address: { host: '127.0.0.1', port: ground.originPort }, processes: {} };
  },
};
