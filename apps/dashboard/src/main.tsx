// The dashboard begins here.
import { createRoot } from 'react-dom/client';
import { createApp } from './app/create-app.tsx';

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(createApp());
