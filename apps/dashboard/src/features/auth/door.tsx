// The frame of the pages before sign-in: one card in the middle.
import { Outlet } from '@tanstack/react-router';
import { Brand } from '../../app/brand.tsx';

export const Door = () => (
  <main className="mx-auto flex min-h-dvh w-full max-w-[25rem] flex-col px-4 pt-[max(2rem,10vh)] pb-12">
    <div className="mb-8 flex justify-center">
      <Brand />
    </div>
    <Outlet />
  </main>
);
