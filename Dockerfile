# The page for others: docker compose up. Its steps are .ci/image; see ragqa/server/README.md.
FROM debian:bookworm-slim
ARG PIP_EXTRA_INDEX_URL=
COPY . /src
RUN /src/.ci/image && rm -rf /src
USER ragqa
WORKDIR /opt/ragqa
ENV RAGQA_HOME=/var/lib/ragqa RAGQA_LOG=json RAGQA_ACCESS=on PYTHONDONTWRITEBYTECODE=1
VOLUME /var/lib/ragqa
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s CMD [".venv/bin/python", "-c", \
  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT [".venv/bin/streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.port", "8501"]
CMD ["--server.allowedHosts", "localhost"]
