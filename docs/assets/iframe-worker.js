// Search runs in a worker, and browsers refuse workers to pages that are opened as files. There, a hidden frame takes
// the worker's place: it runs the same script, and messages go back and forth as they do with a worker.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.waiting = [] // messages that came before the script was there
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      const load = (source) =>
        new Promise((done, failed) => {
          const element = inside.document.createElement("script")
          element.src = source
          element.onload = done
          element.onerror = () => failed(new Error(source + " cannot be loaded"))
          inside.document.body.appendChild(element)
        })
      // A worker's importScripts is synchronous. The script for the search awaits it, so that a promise does as well.
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve())
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      load(new URL(url, location.href).href).then(
        () => {
          const waiting = this.waiting
          this.waiting = null
          waiting.forEach((data) => this.postMessage(data))
        },
        (error) => this.dispatchEvent(new ErrorEvent("error", { error, message: error.message })),
      )
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = FrameWorker
  window.IFrameWorker = FrameWorker // by this name the script for the search knows that it runs in a frame
}
