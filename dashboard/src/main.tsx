import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import './style.css'
import { createClient } from '@redrive/client'
import { App } from './app.tsx'

const root = document.getElementById('root')
if (!root) throw new Error('the page has no #root')

createRoot(root).render(
  <StrictMode>
    <App client={createClient()} />
  </StrictMode>,
)
