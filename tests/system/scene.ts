// Tests with a scene: what one of them has running is gone when it is over.
import { it as plainIt } from 'vitest';
import { Scene } from './running-things.ts';

export { Scene };

/** Tests that get a scene of their own, so that they may run at the same time. */
export const it = plainIt.extend<{ scene: Scene }>({
  scene: async ({ task: _ }, use) => {
    const scene = new Scene();
    await use(scene);
    await scene.close();
  },
});
